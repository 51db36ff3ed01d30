import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { freePort } from '../../../bench/harness/clean-up.ts'
import type { Owner } from '../../postgres/support/new-cluster.ts'
import { patroniConfiguration } from './patroni-configuration.ts'
import type { PatroniPrograms } from './patroni-programs.ts'

export interface MemberOptions {
  readonly name: string
  /** The name of the cluster. */
  readonly folder: string
  readonly etcdPort: number
  readonly programs: PatroniPrograms
  readonly owner: Owner
}

/**
 * A Patroni and the PostgreSQL that it runs. PostgreSQL is not its child process: either can die without the
 * other.
 */
export class PatroniMember {
  readonly name: string
  readonly port: number
  /** The port of Patroni's REST API. */
  readonly apiPort: number
  readonly #options: MemberOptions
  readonly #data: string
  #patroni: ChildProcess | undefined
  #hasEnded = false
  log = ''

  private constructor(options: MemberOptions, port: number, apiPort: number) {
    this.name = options.name
    this.port = port
    this.apiPort = apiPort
    this.#options = options
    this.#data = join(options.folder, options.name)
  }

  static async prepare(options: MemberOptions): Promise<PatroniMember> {
    const member = new PatroniMember(options, await freePort(), await freePort())
    await writeFile(member.#configuration, patroniConfiguration(member, { ...options, data: member.#data }))
    return member
  }

  get isSupervised(): boolean {
    return this.#patroni !== undefined
  }

  /** Patroni starts PostgreSQL, or takes control of a running one. */
  start(): void {
    if (this.#hasEnded) return
    const { programs, owner, folder } = this.#options
    const child = spawn(programs.patroni, [this.#configuration], {
      ...owner,
      cwd: folder,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    for (const output of [child.stdout, child.stderr])
      output.on('data', (chunk: Buffer) => {
        this.log = (this.log + chunk.toString()).slice(-50_000)
      })
    this.#patroni = child
  }

  /** Kills Patroni only. PostgreSQL continues and no longer follows the cluster. */
  async killPatroni(): Promise<void> {
    const child = this.#patroni
    this.#patroni = undefined
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  }

  /** Kills the postmaster only. Its children notice by themselves, perhaps after one more commit. */
  async killPostmaster(): Promise<void> {
    const pid = await this.#postmaster()
    if (pid !== undefined) signal(pid, 'SIGKILL')
  }

  /**
   * Kills everything at once, as when a machine goes down, including processes that Patroni has just started.
   */
  async killEverything(): Promise<void> {
    const roots = [this.#patroni?.pid, await this.#postmaster()].filter((pid) => pid !== undefined)
    // A stopped process starts no others while its children are listed.
    for (const pid of roots) signal(pid, 'SIGSTOP')
    const descendants = await Promise.all(roots.map(descendantsOf))
    for (const pid of [...roots, ...descendants.flat()]) signal(pid, 'SIGKILL')
    await this.killPatroni()
  }

  /** Stops it permanently. A server that was being started when Patroni was killed appears a little later. */
  async end(): Promise<void> {
    this.#hasEnded = true
    for (let quiet = 0; quiet < 3; quiet += 1) {
      if ((await this.#postmaster()) !== undefined) quiet = 0
      await this.killEverything()
      await sleep(50)
    }
  }

  async query(text: string): Promise<Record<string, unknown>[]> {
    const client = new pg.Client({
      ...{ host: '127.0.0.1', port: this.port, user: 'postgres', database: 'postgres' },
      ...{ connectionTimeoutMillis: 2000, query_timeout: 10_000 },
    })
    // A connection that breaks while no query runs would end the process.
    client.on('error', () => {})
    try {
      await client.connect()
      return (await client.query(text)).rows
    } finally {
      await client.end().catch(() => {})
    }
  }

  /** A new primary accepts writes at once, but a commit waits until it has its own standby. */
  async untilItCommits(withinMillis: number): Promise<void> {
    const until = Date.now() + withinMillis
    while (Date.now() < until) {
      try {
        await this.query(`SELECT pg_logical_emit_message(true, 'baton', 'a commit with nothing in it')`)
        return
      } catch {
        await sleep(20)
      }
    }
    throw new Error(`${this.name} took no commit in ${withinMillis / 1000} s: ${this.log.slice(-3000)}`)
  }

  get #configuration(): string {
    return `${this.#data}.yml`
  }

  /** The process that the pid file names, if it runs. */
  async #postmaster(): Promise<number | undefined> {
    const file = await readFile(join(this.#data, 'postmaster.pid'), 'utf8').catch(() => '')
    const pid = Number(file.split('\n')[0])
    if (!(pid > 0)) return undefined
    // The process id may have been reused by another process, which must not be killed.
    const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
    return command.includes(this.#data) ? pid : undefined
  }
}

async function descendantsOf(pid: number): Promise<number[]> {
  const listed = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '')
  const children = listed
    .split(' ')
    .map(Number)
    .filter((child) => child > 0)
  return [...children, ...(await Promise.all(children.map(descendantsOf))).flat()]
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch {
    // The process has just ended.
  }
}
