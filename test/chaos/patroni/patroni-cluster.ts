import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, chown, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '../../../bench/harness/clean-up.ts'
import type { Owner } from '../../postgres/support/new-cluster.ts'
import { ownerOfServers } from '../../postgres/support/postgres-server.ts'
import { PatroniMember } from './patroni-member.ts'
import { findPatroniPrograms } from './patroni-programs.ts'

/**
 * `first` and `any` are keywords of synchronous_standby_names, where Patroni 3 does not quote these names.
 */
const MEMBERS = ['db_1', 'db_2', 'db_3']
/** Enough for the slowest machine to create a cluster or copy a member. */
const PATIENCE_MILLIS = 180_000

/** What Patroni's REST API reports about a member, read from etcd. */
interface MemberState {
  readonly name: string
  readonly role: 'leader' | 'sync_standby' | 'replica' | string
  readonly state: string
}

/** Three members that Patroni manages with etcd: a primary, a synchronous standby, and another standby. */
export class PatroniCluster {
  readonly members: readonly PatroniMember[]
  readonly #folder: string
  readonly #etcd: ChildProcess

  private constructor(members: readonly PatroniMember[], folder: string, etcd: ChildProcess) {
    this.members = members
    this.#folder = folder
    this.#etcd = etcd
  }

  static async start(): Promise<PatroniCluster> {
    const programs = await findPatroniPrograms()
    const owner = await ownerOfServers()
    const folder = await mkdtemp(join(tmpdir(), 'baton-patroni-'))
    await chmod(folder, 0o711)
    if (owner.uid !== undefined && owner.gid !== undefined) await chown(folder, owner.uid, owner.gid)
    const etcdPort = await freePort()
    const etcd = await startEtcd(programs.etcd, { folder, port: etcdPort, owner })
    const prepare = (name: string) => PatroniMember.prepare({ name, folder, etcdPort, programs, owner })
    const cluster = new PatroniCluster(await Promise.all(MEMBERS.map(prepare)), folder, etcd)
    try {
      for (const member of cluster.members) member.start()
      const primary = await cluster.synchronousPrimary()
      await primary.query('CREATE DATABASE baton')
      return cluster
    } catch (error) {
      await cluster.dispose()
      throw error
    }
  }

  /** The addresses of all members; a node finds the one that accepts writes. */
  get url(): string {
    const hosts = this.members.map(({ port }) => `127.0.0.1:${port}`).join(',')
    return `postgres://postgres@${hosts}/baton?target_session_attrs=read-write`
  }

  /** The primary, as soon as a standby may replace it. */
  async synchronousPrimary(): Promise<PatroniMember> {
    const until = Date.now() + PATIENCE_MILLIS
    while (Date.now() < until) {
      const states = await this.#states()
      const leader = this.#leaderOf(states)
      const canBeReplaced = states.some(({ role, state }) => role === 'sync_standby' && isUp(state))
      if (leader?.isSupervised && canBeReplaced && (await takesWrites(leader))) return leader
      await sleep(100)
    }
    throw new Error(`Patroni has no primary with a synchronous standby: ${await this.#report()}`)
  }

  /** Undefined if no other member has taken over in that time. */
  async successorOf(old: PatroniMember, withinMillis: number): Promise<PatroniMember | undefined> {
    const until = Date.now() + withinMillis
    while (Date.now() < until) {
      const leader = this.#leaderOf(await this.#states())
      if (leader !== undefined && leader !== old && (await takesWrites(leader))) return leader
      await sleep(20)
    }
    return undefined
  }

  async dispose(): Promise<void> {
    await Promise.all(this.members.map((member) => member.end()))
    const ended = once(this.#etcd, 'exit')
    if (this.#etcd.exitCode === null && this.#etcd.kill('SIGKILL')) await ended
    await rm(this.#folder, { recursive: true, force: true })
  }

  /** From the first Patroni that answers. */
  async #states(): Promise<readonly MemberState[]> {
    for (const { apiPort, isSupervised } of this.members) {
      if (!isSupervised) continue
      try {
        const signal = AbortSignal.timeout(2000)
        const response = await fetch(`http://127.0.0.1:${apiPort}/cluster`, { signal })
        if (response.ok) return ((await response.json()) as { members: MemberState[] }).members
      } catch {
        // It is starting or busy; another one has the same information.
      }
    }
    return []
  }

  #leaderOf(states: readonly MemberState[]): PatroniMember | undefined {
    const leader = states.find(({ role }) => role === 'leader')
    return this.members.find(({ name }) => name === leader?.name)
  }

  async #report(): Promise<string> {
    const states = await this.#states()
    const replication = await this.#leaderOf(states)
      ?.query(
        `SELECT application_name, state, sync_state, flush_lsn, current_setting('synchronous_standby_names') AS confirming
         FROM pg_stat_replication`,
      )
      .catch(String)
    const logs = this.members.map(({ name, log }) => `${name}: ${log.slice(-3000)}`)
    return [JSON.stringify(states), JSON.stringify(replication), ...logs].join('\n')
  }
}

/** Newer versions report a receiving standby as `streaming`. */
const isUp = (state: string): boolean => state === 'running' || state === 'streaming'

async function takesWrites(member: PatroniMember): Promise<boolean> {
  try {
    const [row] = await member.query('SELECT pg_is_in_recovery() AS standby')
    return row?.['standby'] === false
  } catch {
    return false
  }
}

/** A single etcd: it holds the lock of the primary, and its own fail-over is not under test. */
async function startEtcd(
  etcd: string,
  { folder, port, owner }: { readonly folder: string; readonly port: number; readonly owner: Owner },
): Promise<ChildProcess> {
  const data = join(folder, 'etcd')
  await mkdir(data, { mode: 0o700 })
  if (owner.uid !== undefined && owner.gid !== undefined) await chown(data, owner.uid, owner.gid)
  const peer = `http://127.0.0.1:${await freePort()}`
  const client = `http://127.0.0.1:${port}`
  const child = spawn(
    etcd,
    [
      ...['--name', 'only', '--data-dir', data, '--log-level', 'error', '--logger', 'zap'],
      ...['--listen-client-urls', client, '--advertise-client-urls', client],
      ...['--listen-peer-urls', peer, '--initial-advertise-peer-urls', peer],
      ...['--initial-cluster', `only=${peer}`],
    ],
    { ...owner, stdio: 'ignore' },
  )
  while (child.exitCode === null && child.signalCode === null) {
    const response = await fetch(`${client}/health`).catch(() => undefined)
    if (response?.ok === true) return child
    await sleep(50)
  }
  throw new Error(
    `etcd ended with ${child.exitCode ?? child.signalCode} instead of listening on port ${port}`,
  )
}
