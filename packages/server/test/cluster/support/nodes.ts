import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, onTestFinished } from 'vitest'
import { PostgresServer } from '../../../../../test/postgres/support/postgres-server.ts'
import { until } from '../../../../../test/support/until.ts'
import { type App, openApp } from '../../../src/app.ts'
import type { Config } from '../../../src/config.ts'
import { readSettings } from '../../../src/settings.ts'
import { CleanDatabases } from '../../support/clean-databases.ts'

interface Answer {
  readonly status: number
  readonly headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: tests reach into answers whose schema is checked elsewhere
  readonly body: any
}

/** A complete node that listens, on a database that it shares with others. It is closed after the test. */
export class TestNode {
  readonly app: App
  readonly url: string
  /** What it has logged. */
  readonly messages: string[]
  #closed: Promise<void> | undefined

  private constructor(app: App, url: string, messages: string[]) {
    this.app = app
    this.url = url
    this.messages = messages
  }

  /** A node that has not joined yet. */
  static async listen(databaseUrl: string, changed: Partial<Config> = {}): Promise<TestNode> {
    const { config } = readSettings(new Map(), {})
    const messages: string[] = []
    const note = (_: object, message: string) => void messages.push(message)
    const log = { debug() {}, info: note, warn: note, error: note }
    const app = await openApp({ ...config, databaseUrl, ...changed }, { log })
    await app.http.listen({ host: '127.0.0.1', port: 0 })
    const { port } = app.http.server.address() as AddressInfo
    const node = new TestNode(app, `http://127.0.0.1:${port}`, messages)
    onTestFinished(() => node.close())
    return node
  }

  static async start(databaseUrl: string, changed: Partial<Config> = {}): Promise<TestNode> {
    const node = await TestNode.listen(databaseUrl, changed)
    await node.join()
    return node
  }

  join(url = this.url): Promise<void> {
    return this.app.join(url)
  }

  get leads(): boolean {
    return this.app.handOff.leads
  }

  get port(): number {
    return Number(new URL(this.url).port)
  }

  close(): Promise<void> {
    this.#closed ??= this.app.close()
    return this.#closed
  }

  get = (path: string, headers: Record<string, string> = {}) => this.ask('GET', path, headers)
  post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
    this.ask('POST', path, { 'content-type': 'application/json', ...headers }, JSON.stringify(body))

  async ask(
    method: string,
    path: string,
    headers: Record<string, string>,
    body?: string | Uint8Array<ArrayBuffer>,
  ): Promise<Answer> {
    const answer = await fetch(`${this.url}${path}`, {
      method,
      headers,
      ...(body === undefined ? {} : { body }),
    })
    const text = await answer.text()
    const isJson = text !== '' && answer.headers.get('content-type')?.includes('json') === true
    return { status: answer.status, headers: answer.headers, body: isJson ? JSON.parse(text) : text }
  }

  /** The names of the partitions that a pull gets. */
  async pull(headers: Record<string, string> = {}): Promise<string[]> {
    const { status, body } = await this.get('/pull', headers)
    if (status !== 200) throw new Error(`a pull was answered ${status}: ${JSON.stringify(body)}`)
    return body.partitions.map((partition: { partition_name: string }) => partition.partition_name)
  }
}

export interface Databases {
  /** The URL of an empty database. */
  create(): Promise<string>
  query(url: string, text: string): Promise<Record<string, unknown>[]>
}

/** One server for all tests of a file, and databases on it. */
export function databases(): Databases {
  let server: PostgresServer
  let clean: CleanDatabases
  beforeAll(async () => {
    server = await PostgresServer.start()
    clean = await CleanDatabases.on(server)
  })
  afterAll(() => server.dispose())
  return {
    create: async () => (await clean.create()).url,
    query: (url, text) => server.query(text, new URL(url).pathname.slice(1)),
  }
}

/** Nodes on a database, with these settings. The first one is the leader. */
export async function startNodes<Settings extends readonly Partial<Config>[]>(
  databaseUrl: string,
  ...settings: Settings
): Promise<{ [At in keyof Settings]: TestNode }> {
  const nodes: TestNode[] = []
  for (const [at, changed] of settings.entries())
    nodes.push(await TestNode.start(databaseUrl, { instanceId: `node-${at}`, ...changed }))
  await until(() => nodes[0]?.leads === true)
  return nodes as { [At in keyof Settings]: TestNode }
}

/** Holds the results of a verb on a node, and signals when one is there. */
export function holdUp({ app: { handOff } }: TestNode, verb: 'pull' | 'settle' | 'callBack' = 'pull') {
  const [arrived, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const original = handOff[verb].bind(handOff) as (...given: unknown[]) => Promise<unknown>
  const held = async (...given: unknown[]) => {
    const result = await original(...given)
    arrived.resolve()
    await released.promise
    return result
  }
  Object.assign(handOff, { [verb]: held })
  return { arrived: arrived.promise, release: released.resolve }
}
