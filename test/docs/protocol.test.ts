import { errorCodes, eventNames, HEARTBEAT_SECONDS, parkedEventSchema } from '@baton/protocol'
import { Value } from 'typebox/value'
import { describe, expect, test } from 'vitest'
import { partitionStates, transitions } from '../../packages/server/src/handoff/rules/life-cycle.ts'
import { errorsIn, problemsNamedFor, sharedErrors } from './support/errors.ts'
import { fencesOf, inCode, readDocument, sectionNamed, sectionsOf, tableRows } from './support/markdown.ts'
import { servedRoutes } from './support/routes.ts'
import { readTranscript } from './support/transcript.ts'

const protocol = `${readDocument('docs/protocol.md')}\n${readDocument('docs/protocol-views.md')}`

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
    const real = Object.entries(transitions).flatMap(([event, { from, to }]) =>
      from.map((state) => `${state} ${event} ${to}`),
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

/** The tables of a section, one by one. */
function splitTables(text: string): string[][][] {
  return text
    .split(/\n(?!\|)/)
    .map(tableRows)
    .filter((rows) => rows.length > 0)
}
