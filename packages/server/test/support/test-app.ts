import {
  errorCodes,
  type PartitionDescriptor,
  type ProblemCode,
  type PulledPartition,
  problemSchema,
} from '@baton/protocol'
import { Value } from 'typebox/value'
import { afterAll, beforeAll, expect, onTestFinished } from 'vitest'
import { quiet } from '../../../../test/support/quiet-log.ts'
import { type AtEnd, testFolder } from '../../../../test/support/test-folder.ts'
import { type App, type AppOptions, openApp } from '../../src/app.ts'
import type { Config } from '../../src/config.ts'
import { readSettings } from '../../src/settings.ts'
import { answerSchemas } from './answer-schemas.ts'
import type { CleanDatabase } from './clean-databases.ts'
import { recount } from './recount.ts'

export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, unknown>>
  // biome-ignore lint/suspicious/noExplicitAny: tests reach into answers whose schema was checked already
  readonly body: any
  readonly text: string
}

export interface Request {
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
  /** Sent unchanged instead of a JSON body. */
  readonly raw?: string | Buffer
}

let newDatabase: (() => Promise<CleanDatabase>) | undefined

/** From here on, services under test use databases made by this function, not the embedded store. */
export function keepDataIn(make: () => Promise<CleanDatabase>): void {
  newDatabase = make
}

/** Whether services under test keep their data in the embedded store. */
export const isEmbedded = (): boolean => newDatabase === undefined

/** The complete service on a real store, closed when the test ends. */
export class TestApp {
  readonly app: App
  readonly config: Config

  private constructor(app: App, config: Config) {
    this.app = app
    this.config = config
  }

  static async open(
    changed: Partial<Config> = {},
    { atEnd = onTestFinished, ...options }: Partial<AppOptions> & { atEnd?: AtEnd } = {},
  ): Promise<TestApp> {
    const { config: defaults } = readSettings(new Map(), {})
    const database = await newDatabase?.()
    if (database !== undefined) atEnd(async () => database.giveBack())
    const own = {
      instanceId: 'node-under-test',
      data: changed.data ?? (await testFolder(atEnd)),
      databaseUrl: database?.url ?? null,
    }
    const config = { ...defaults, ...own, ...changed }
    const app = await openApp(config, { log: quiet, ...options })
    // Requests are injected, and there is no other node.
    await app.join('http://127.0.0.1:1')
    atEnd(() => app.close())
    return new TestApp(app, config)
  }

  /** One service for all tests of a file whose requests do not interfere. */
  static shared(changed: Partial<Config> = {}): () => TestApp {
    let baton: TestApp | undefined
    const cleanUps: (() => Promise<void>)[] = []
    beforeAll(async () => {
      baton = await TestApp.open(changed, { atEnd: (cleanUp) => cleanUps.unshift(cleanUp) })
    })
    afterAll(async () => {
      for (const cleanUp of cleanUps) await cleanUp()
    })
    return () => {
      if (baton === undefined) throw new Error('the service is there from beforeAll on')
      return baton
    }
  }

  get = (path: string, headers: Readonly<Record<string, string>> = {}) => this.ask('GET', path, { headers })
  post = (path: string, body?: unknown, headers: Readonly<Record<string, string>> = {}) =>
    this.ask('POST', path, body === undefined ? { headers } : { headers, body })

  /** Checks every answer against the schema that the service publishes for it. */
  async ask(method: string, path: string, { headers = {}, body, raw }: Request = {}): Promise<Answer> {
    const json = body === undefined ? {} : { 'content-type': 'application/json' }
    const payload = raw ?? (body === undefined ? undefined : JSON.stringify(body))
    const response = await this.app.http.inject({
      method: method as 'GET',
      url: path,
      headers: { ...json, ...headers },
      ...(payload === undefined ? {} : { payload }),
    })
    const type = String(response.headers['content-type'])
    const answer = {
      status: response.statusCode,
      headers: response.headers,
      text: response.body,
      body:
        type.includes('json') && !type.includes('ndjson') && response.body !== ''
          ? response.json()
          : undefined,
    }
    if (answer.status >= 400) expectProblem(answer)
    else if (answer.body !== undefined) this.#expectSchema(method, path, answer)
    return answer
  }

  async callBack(...descriptors: PartitionDescriptor[]): Promise<void> {
    expect((await this.post('/call-back', descriptors)).status).toBe(200)
  }

  /** Settles each of these in the same way. */
  settle(
    partitions: readonly PulledPartition[],
    reported: object = { outcome: 'done' },
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Answer> {
    const settlements = partitions.map((partition) => ({ leaseId: leaseId(partition), ...reported }))
    return this.post('/settle', settlements, headers)
  }

  async pull(headers: Readonly<Record<string, string>> = {}): Promise<PulledPartition[]> {
    const { status, body } = await this.get('/pull', headers)
    expect(status).toBe(200)
    return body.partitions
  }

  /** Checks that the data does not contradict itself. */
  async expectSound(): Promise<void> {
    const { data, databaseUrl } = this.config
    expect(await recount(databaseUrl === null ? { data } : { databaseUrl })).toEqual([])
  }

  #expectSchema(method: string, path: string, { body }: Answer): void {
    const schema = answerSchemas(this.config.tableField).find(
      (route) => route.method === method && route.path.test(path.split('?', 1)[0] ?? ''),
    )?.schema
    if (schema === undefined) return
    expect([...Value.Errors(schema, body)], `the answer of ${method} ${path} breaks its schema`).toEqual([])
  }
}

export function expectProblem({ status, headers, body }: Answer): void {
  expect(headers['content-type']).toBe('application/problem+json')
  expect([...Value.Errors(problemSchema, body)]).toEqual([])
  expect(body.status).toBe(status)
  expect(errorCodes[body.code as ProblemCode].status).toBe(status)
}

export function descriptor(
  taskId: string,
  level: number,
  index: number,
  changed: Partial<PartitionDescriptor> = {},
): PartitionDescriptor {
  return {
    taskId,
    computeTableName: 'results.orders',
    partition_name: `${taskId}-${level}-${index}`,
    record_count: 100,
    priorityLevel: level,
    ...changed,
  }
}

/** This many partitions of one level. */
export function descriptors(
  taskId: string,
  count: number,
  changed: Partial<PartitionDescriptor> = {},
): PartitionDescriptor[] {
  return Array.from({ length: count }, (_, index) => descriptor(taskId, 0, index, changed))
}

export function leaseId(partition: PulledPartition | undefined): string {
  if (partition?.lease == null) throw new Error('no lease was given')
  return partition.lease.id
}
