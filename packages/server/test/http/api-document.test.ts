import { errorCodes, problemSchema } from '@baton/protocol'
import { Validator } from '@seriousme/openapi-schema-validator'
import type { TSchema } from 'typebox'
import { Value } from 'typebox/value'
import { describe, expect, test } from 'vitest'
import { operationDescriptions } from '../../src/http/api-document/operation-descriptions.ts'
import { TestApp } from '../support/test-app.ts'

interface Content {
  schema: TSchema & { $ref?: string }
  examples: Record<string, { value?: unknown; $ref?: string }>
}

interface Operation {
  operationId: string
  summary: string
  description?: string
  tags: string[]
  'x-actor': string
  parameters: { name: string; required: boolean; schema: object }[]
  requestBody?: { required: boolean; content: Record<string, Content> }
  responses: Record<string, { description: string; content: Record<string, Content> }>
}

interface ApiDocument {
  info: { contact?: object }
  tags: { name: string }[]
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, object>; examples: Record<string, { value: { code: string } }> }
}

const service = TestApp.shared({ tableField: 'sparkTableName' })

async function readDocument() {
  const { body } = await service().get('/openapi.json')
  const document = body as ApiDocument
  return { document, operations: operationsOf(document) }
}

const operationsOf = ({ paths }: ApiDocument) => Object.values(paths).flatMap((path) => Object.values(path))

/** Every reference replaced by its schema. */
async function inlined(document: ApiDocument): Promise<ApiDocument> {
  const validator = new Validator()
  await validator.validate(structuredClone(document) as never)
  return validator.resolveRefs() as unknown as ApiDocument
}

/** What a document's schema would refuse, as sentences. */
function faults(schema: TSchema, value: unknown): string[] {
  return [...Value.Errors(withoutFormats(schema), value)].map(
    ({ instancePath, message }) => `${instancePath} ${message}`,
  )
}

/** A `date-time` is written by the service itself; its format is not checked here. */
function withoutFormats<S>(schema: S): S {
  return JSON.parse(JSON.stringify(schema, (key, value) => (key === 'format' ? undefined : value)))
}

describe('the API document', () => {
  test('is valid OpenAPI 3.1', async () => {
    const { document } = await readDocument()
    const outcome = await new Validator().validate(structuredClone(document) as never)
    expect(outcome.errors ?? []).toEqual([])
    expect(outcome.valid).toBe(true)
  })

  // The rules of Spectral's `oas` ruleset that the validator does not have.
  test('has a contact, and a unique name, a summary, a description and declared tags for each operation', async () => {
    const { document, operations } = await readDocument()
    expect(document.info.contact).toBeTypeOf('object')
    const declared = document.tags.map(({ name }) => name)
    expect(new Set(operations.map(({ operationId }) => operationId)).size).toBe(operations.length)
    for (const { operationId, summary, description, tags } of operations) {
      expect([operationId, summary]).toEqual([operationId, expect.stringMatching(/\w/)])
      expect([operationId, description ?? '']).toEqual([operationId, expect.stringMatching(/\w.*\.$/s)])
      expect(declared).toEqual(expect.arrayContaining(tags))
    }
    const unused = Object.keys(operationDescriptions).filter(
      (id) => !operations.some(({ operationId }) => operationId === id),
    )
    expect(unused).toEqual([])
  })

  test('states which bodies may be omitted', async () => {
    const { operations } = await readDocument()
    const optional = operations.filter(({ requestBody }) => requestBody?.required === false)
    const demanded = operations.filter(({ requestBody }) => requestBody?.required === true)
    const ids = (some: readonly Operation[]) => some.map(({ operationId }) => operationId).toSorted()
    expect(ids(optional).join(' ')).toBe(
      'cancel enableSubscription levelBarrier pause pauseInstance redeliver releaseInstance releasePartition resume resumeInstance retry rotateSecret seal skipParked',
    )
    expect(ids(demanded).join(' ')).toBe(
      'callBack changeSettings changeTableSettings owner renew settle subscribe',
    )
  })

  test('states the parameters and headers of a list, and of a pull, alone or with a settle', async () => {
    const { paths } = (await readDocument()).document
    const namesOf = (operation: Operation | undefined) => operation?.parameters.map(({ name }) => name)
    const list = paths['/tasks']?.['get']
    expect(namesOf(list)).toEqual(['state', 'parked', 'search', 'limit', 'cursor'])
    expect(list?.parameters[1]).toMatchObject({ required: false, schema: { type: 'boolean', enum: [true] } })
    for (const operation of [paths['/pull']?.['get'], paths['/settle']?.['post']]) {
      const inQuery = ['table', 'task', 'batch', 'records', 'wait']
      expect(namesOf(operation)).toEqual([...inQuery, 'x-instance-id', 'prefer', 'idempotency-key'])
    }
  })

  test('states which control request is not idempotent', async () => {
    const { paths } = (await readDocument()).document
    const said = (verb: string) => paths[`/tasks/{taskId}/${verb}`]?.['post']?.responses['200']?.description
    expect(said('pause')).toBe('Done; repeating the request has no further effect')
    expect(said('retry')).toContain('except with `done`: partitions that were finished in between run again')
  })

  test('has only patterns that libraries of other languages support', async () => {
    const { document } = await readDocument()
    const patterns = new Set(patternsIn(document))
    expect(patterns.size).toBeGreaterThan(3)
    expect([...patterns].filter((pattern) => !isPortable(pattern))).toEqual([])
  })

  test.each(['(?!a)b', '(?<=a)b', '(a)\\1', '\\p{L}', '\\u0041', '[', 'a**'])(
    'does not have the pattern %s, which they do not support',
    (pattern) => expect(isPortable(pattern)).toBe(false),
  )

  test('has a name for the request and the answers of each operation', async () => {
    const { operations } = await readDocument()
    const names = operations.map(({ operationId, requestBody, responses }) => [
      operationId,
      nameIn(requestBody?.content),
      nameIn(responses['200']?.content),
    ])
    expect(Object.fromEntries(names.map(([operation, ...both]) => [operation, both]))).toEqual({
      callBack: ['PartitionDescriptor[]', 'CallBackAnswer'],
      pull: [undefined, 'PullAnswer'],
      settle: ['Settlement[]', 'SettleAnswer'],
      renew: ['LeaseToRenew[]', 'RenewAnswer'],
      instanceStatus: [undefined, 'InstanceStatus'],
      listInstances: [undefined, 'InstanceList'],
      listInstanceAttempts: [undefined, 'InstanceAttemptList'],
      listInstanceLeases: [undefined, 'HeldLeaseList'],
      pauseInstance: ['object', 'InstanceStatus'],
      resumeInstance: ['object', 'InstanceStatus'],
      releaseInstance: ['object', 'ReleaseAnswer'],
      listTables: [undefined, 'TableList'],
      viewTable: [undefined, 'TableView'],
      viewTableSettings: [undefined, 'TableSettingsAnswer'],
      changeTableSettings: ['TableSettingsRequest', 'TableSettingsAnswer'],
      releasePartition: ['object', 'PartitionReleaseAnswer'],
      listTasks: [undefined, 'TaskList'],
      viewTotals: [undefined, 'Totals'],
      viewScale: [undefined, 'Scale'],
      viewTask: [undefined, 'TaskView'],
      listNodeAudit: [undefined, 'NodeAudit'],
      listPartitions: [undefined, 'PartitionList'],
      viewThroughput: [undefined, 'Throughput'],
      viewThroughputOfAll: [undefined, 'Throughput'],
      viewFeed: [undefined, 'TaskFeed'],
      viewGrid: [undefined, 'Grid'],
      whoami: [undefined, 'Whoami'],
      exportManifest: [undefined, 'ManifestLine'],
      pause: ['object', 'ControlAnswer'],
      resume: ['object', 'ControlAnswer'],
      cancel: ['object', 'ControlAnswer'],
      skipParked: ['object', 'ControlAnswer'],
      retry: ['RetryRequest', 'ControlAnswer'],
      seal: ['SealRequest', 'ControlAnswer'],
      levelBarrier: ['LevelBarrierRequest', 'ControlAnswer'],
      owner: ['OwnerRequest', 'ControlAnswer'],
      settings: [undefined, 'TaskSettingsAnswer'],
      changeSettings: ['TaskSettingsRequest', 'TaskSettingsAnswer'],
      listAudit: [undefined, 'AuditList'],
      subscribe: ['SubscribeRequest', 'SubscriptionSecret'],
      listSubscriptions: [undefined, 'SubscriptionList'],
      unsubscribe: [undefined, 'UnsubscribeAnswer'],
      rotateSecret: ['RotateSecretRequest', 'SubscriptionSecret'],
      enableSubscription: ['object', 'Subscription'],
      listDeliveries: [undefined, 'DeliveryList'],
      redeliver: ['object', 'Delivery'],
      readEvents: [undefined, 'EventPage'],
      followEvents: [undefined, 'string'],
      livez: [undefined, 'object'],
      readyz: [undefined, 'object'],
      metrics: [undefined, 'string'],
    })
  })

  test('defines each named schema once, and references it everywhere else', async () => {
    const { document } = await readDocument()
    const text = JSON.stringify(document)
    for (const [name, schema] of Object.entries(document.components.schemas)) {
      expect([name, text.includes(`{"$ref":"#/components/schemas/${name}"`)]).toEqual([name, true])
      expect([name, text.split(JSON.stringify(schema)).length - 1]).toEqual([name, 1])
    }
    expect(document.components.schemas).toMatchObject({
      PartitionDescriptor: {
        properties: { partition_name: { examples: ['orders-2026-03-0-7'] }, sparkTableName: {} },
      },
      PulledPartition: {
        properties: {
          sparkTableName: {},
          lease: { anyOf: [{ $ref: '#/components/schemas/Lease' }, { type: 'null' }] },
        },
      },
      ControlAnswer: {
        properties: {
          state: {
            $ref: '#/components/schemas/TaskState',
            description: 'The state of the task after the request',
          },
        },
      },
    })
  })

  test('states the roles of each operation', async () => {
    const { operations } = await readDocument()
    const actors = Object.fromEntries(operations.map((one) => [one.operationId, one['x-actor']]))
    expect(actors).toMatchObject({
      callBack: 'producer',
      pull: 'worker',
      settle: 'worker',
      renew: 'worker',
      cancel: 'operator',
      followEvents: 'operator',
      instanceStatus: 'anyone',
    })
    expect(new Set(Object.values(actors))).toEqual(new Set(['producer', 'worker', 'operator', 'anyone']))
  })

  test('shows an example of every request and every answer, and each passes its schema', async () => {
    const { document } = await readDocument()
    for (const { operationId, requestBody, responses } of operationsOf(await inlined(document))) {
      const answered = Object.values(responses['200']?.content ?? {})
      const optional = Object.values(requestBody?.content ?? {}).filter(
        ({ schema }) => !isEmptyObject(schema),
      )
      expect([operationId, answered.length]).toEqual([operationId, 1])
      for (const { schema, examples } of [...answered, ...optional]) {
        const values = Object.values(examples ?? {}).map(({ value }) => value)
        expect([operationId, values.length]).toEqual([operationId, 1])
        for (const value of values) expect([operationId, ...faults(schema, value)]).toEqual([operationId])
      }
    }
  })

  test('shows the table field under its configured name', async () => {
    const { document } = await readDocument()
    const { requestBody } = document.paths['/call-back']?.['post'] ?? {}
    expect(JSON.stringify(requestBody?.content['application/json']?.examples)).toContain(
      '"sparkTableName":"results.orders"',
    )
  })

  test('shows every problem, where it can occur, and each passes the schema of problems', async () => {
    const { document, operations } = await readDocument()
    const listed = new Set(
      operations.flatMap(({ responses }) => {
        const content = responses['default']?.content['application/problem+json'] as Content
        return Object.values(content.examples).map(({ $ref = '' }) => $ref.split('/').at(-1))
      }),
    )
    const answered = Object.entries(errorCodes).filter(([, { status }]) => status !== null)
    expect(listed).toEqual(new Set(answered.map(([code]) => code)))
    for (const [code] of answered) {
      const value = document.components.examples[code]?.value
      expect([code, value?.code, ...faults(problemSchema, value)]).toEqual([code, code])
    }
  })
})

/** The name of a schema, or its type if it has none. */
function nameIn(content: Record<string, Content> | undefined): string | undefined {
  const nameOf = ({ $ref, type, items }: { $ref?: string; type?: string; items?: object }): string =>
    $ref?.split('/').at(-1) ?? (items === undefined ? String(type) : `${nameOf(items)}[]`)
  return Object.values(content ?? {}).map(({ schema }) => nameOf(schema))[0]
}

/** Requests without content need no example. */
function isEmptyObject(schema: TSchema): boolean {
  const { properties } = schema as { properties?: object }
  return properties !== undefined && Object.keys(properties).length === 0
}

function patternsIn(part: unknown): string[] {
  if (typeof part !== 'object' || part === null) return []
  return Object.entries(part).flatMap(([key, value]) =>
    key === 'pattern' && typeof value === 'string' ? [value] : patternsIn(value),
  )
}

/**
 * The features that ECMAScript with and without `u`, Python's re and RE2 have in common: no lookaround, no
 * backreferences, no character properties, and of the numeric escapes only the one with two digits.
 */
function isPortable(pattern: string): boolean {
  const isForeign = /\(\?(?!:)|\\(?!x[0-9a-f]{2}|[.^$*+?()[\]{}|/-])/.test(pattern)
  try {
    return !isForeign && [new RegExp(pattern), new RegExp(pattern, 'u')].length === 2
  } catch {
    return false
  }
}
