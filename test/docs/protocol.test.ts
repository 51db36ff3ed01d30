import {
  type ErrorCode,
  errorCodes,
  eventNames,
  HEARTBEAT_SECONDS,
  idempotencyKeyKeywords,
  instanceIdKeywords,
  MAX_BATCH,
  MAX_KEPT_REASON_LENGTH,
  MAX_LEASES_PER_REQUEST,
  MAX_LISTED_VIOLATIONS,
  MAX_PAGE_LENGTH,
  MAX_PARTITION_NAME_LENGTH,
  MAX_RETRIED_BY_NAME,
  MAX_TABLE_NAME_LENGTH,
  MAX_TASK_ID_LENGTH,
  MAX_WAIT_SECONDS,
  parkedEventSchema,
} from '@baton/protocol'
import { Value } from 'typebox/value'
import { describe, expect, test } from 'vitest'
import { settingOf } from '../../packages/server/src/config.ts'
import { MAX_WAITING_PULLS } from '../../packages/server/src/handoff/pulls.ts'
import {
  partitionEvents,
  partitionStates,
  type StoredState,
  transitions,
} from '../../packages/server/src/handoff/rules/life-cycle.ts'
import { LEASE_MAX_MILLIS } from '../../packages/server/src/handoff/rules/policy.ts'
import { MAX_DEPTH } from '../../packages/server/src/http/bodies/json-shape.ts'
import { DEFAULT_BODY_LIMIT_BYTES } from '../../packages/server/src/http/service.ts'
import { errorsIn, problemsNamedFor, sharedErrors } from './support/errors.ts'
import { fencesOf, inCode, readDocument, sectionNamed, sectionsOf, tableRows } from './support/markdown.ts'
import { servedRoutes } from './support/routes.ts'
import { readTranscript } from './support/transcript.ts'

const protocol = readDocument('docs/protocol.md')

describe('routes', () => {
  const documented = sectionsOf(protocol)
    .map(({ title }) => title)
    .filter((title) => /^[A-Z]+ \//.test(title))

  test('every route is documented under its own heading, and no other', async () => {
    expect(documented.toSorted()).toEqual((await servedRoutes()).routes.toSorted())
  })

  test('every route has an example, except for pages, streams and formats other than our JSON', () => {
    const shown = readTranscript(protocol).flatMap((step) =>
      step.kind === 'exchange' ? [`${step.request.method} ${step.request.path.split('?', 1)[0]}`] : [],
    )
    const pattern = (route: string) => new RegExp(`^${route.replaceAll(/\{\w+\}/g, '[^/]+')}$`)
    const unshown = documented.filter((route) => !shown.some((request) => pattern(route).test(request)))
    expect(unshown).toEqual(['GET /events', 'GET /', 'GET /docs', 'GET /metrics', 'GET /openapi.json'])
  })
})

describe('error codes', () => {
  const rows = tableRows(sectionNamed(protocol, 'Error codes').text)

  test('the table has the codes of the registry, in its order', () => {
    expect(rows.map(([code]) => code)).toEqual(Object.keys(errorCodes).map((code) => `\`${code}\``))
  })

  test.each(rows)('%s has the status, the meaning and the remedy of the registry', (code, ...cells) => {
    const { status, retryable, meaning, remedy } = errorCodes[inCode(code ?? '')[0] as ErrorCode]
    expect(cells).toEqual([String(status ?? '–'), retryable ? 'yes' : 'no', meaning, remedy])
  })

  test('endpoints name only codes of the registry', () => {
    const shared = sharedErrors(protocol).flatMap(([, codes = '']) => inCode(codes))
    const named = new Set([...shared, ...protocol.split('\n').flatMap(errorsIn)])
    expect([...named].toSorted()).toEqual(Object.keys(errorCodes).toSorted())
  })

  test('each endpoint names the problems that the API document has for it', async () => {
    const { problems } = await servedRoutes()
    expect(problems.size).toBeGreaterThan(15)
    const named = [...problems.keys()].map((route) => [route, problemsNamedFor(protocol, route).toSorted()])
    expect(named).toEqual([...problems].map(([route, codes]) => [route, codes.toSorted()]))
  })
})

describe('the states of a partition', () => {
  const { text } = sectionNamed(readDocument('docs/concepts.md'), 'Life of a partition')
  const [states = []] = splitTables(text)
  const [steps = []] = splitTables(sectionNamed(protocol, 'Life of a partition').text)

  test('the diagram shows every state', () => {
    const drawing = fencesOf(text)[0]?.text ?? ''
    for (const state of partitionStates) expect(drawing).toMatch(new RegExp(`\\b${state}\\b`))
  })

  test('the table of states is complete', () => {
    expect(states.map(([state]) => inCode(state ?? '')[0])).toEqual(partitionStates)
  })

  test('the table of transitions matches the code', () => {
    const shown = steps.flatMap(([step, from = '', to]) =>
      from.split(', ').map((state) => `${state} ${inCode(step ?? '')[0]} ${to}`),
    )
    const real = (Object.keys(transitions) as StoredState[]).flatMap((state) =>
      partitionEvents.flatMap((event) => {
        const to = transitions[state][event]
        return to === null ? [] : [`${state} ${event} ${to}`]
      }),
    )
    expect(shown.toSorted()).toEqual(real.toSorted())
  })
})

describe('events', () => {
  const { text } = sectionNamed(protocol, 'GET /events')

  test('the table is complete', () => {
    expect(tableRows(text).map(([name]) => inCode(name ?? '')[0])).toEqual(eventNames)
  })

  test('the data of the example stream matches the published schema', () => {
    const parked = /^event: parked\ndata: (.+)$/m.exec(text)?.[1] ?? ''
    expect(Value.Check(parkedEventSchema, JSON.parse(parked))).toBe(true)
    expect(text).toContain(`Every ${HEARTBEAT_SECONDS} seconds`)
  })
})

describe('limits', () => {
  const limits = new Map(
    tableRows(sectionNamed(protocol, 'Limits').text).map(([what, limit]) => [what, limit]),
  )
  const grouped = (number: number) => number.toLocaleString('en-US')

  test.each([
    ['body of any other request', `${DEFAULT_BODY_LIMIT_BYTES / 2 ** 20} MiB`],
    ['task id, table name', `${grouped(MAX_TASK_ID_LENGTH)} characters each`],
    ['task id, table name', `${grouped(MAX_TABLE_NAME_LENGTH)} characters each`],
    ['partition name', `${grouped(MAX_PARTITION_NAME_LENGTH)} characters`],
    ['levels, indexes, record counts, and the records of a task', `${grouped(Number.MAX_SAFE_INTEGER)} each`],
    ['instance id', `${instanceIdKeywords.maxLength} characters`],
    ['idempotency key', `${idempotencyKeyKeywords.maxLength} characters`],
    ['leases in a settle or renew', grouped(MAX_LEASES_PER_REQUEST)],
    ['partitions in a pull', grouped(MAX_BATCH)],
    ['waiting pull', `${MAX_WAIT_SECONDS} s`],
    ['pulls that wait on a node', grouped(MAX_WAITING_PULLS)],
    [
      'requests in progress on a connection',
      grouped(settingOf('maxRequestsPerConnection').default as number),
    ],
    ['descriptors in a call-back', grouped(settingOf('maxCallBackPartitions').default as number)],
    ['levels in a call-back', grouped(settingOf('maxCallBackLevels').default as number)],
    ['nesting of a body from 64 KiB on', `${MAX_DEPTH} levels`],
    ['length of a lease', `${LEASE_MAX_MILLIS / 3_600_000} h`],
    [
      'reason of a settlement',
      `65,536 characters sent, ${grouped(MAX_KEPT_REASON_LENGTH)} UTF-16 code units kept`,
    ],
    ['partitions named in a retry', grouped(MAX_RETRIED_BY_NAME)],
    ['entries in a page', grouped(MAX_PAGE_LENGTH)],
    ['violations, and conflicts, listed in a problem', `${MAX_LISTED_VIOLATIONS} each`],
  ])('the limit of %s is %s', (what, limit) => {
    expect(limits.get(what)).toBe(limit)
  })
})

/** The tables of a section, one by one. */
function splitTables(text: string): string[][][] {
  return text
    .split(/\n(?!\|)/)
    .map(tableRows)
    .filter((rows) => rows.length > 0)
}
