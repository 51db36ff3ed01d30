import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '../../../bench/harness/clean-up.ts'
import { ownerOfServers } from '../../postgres/support/postgres-server.ts'
import { findProgram, ProgramsMissing } from './programs.ts'

export function findPgBouncer(): string {
  const found = findProgram('pgbouncer')
  if (found === undefined) throw new ProgramsMissing('pgbouncer', ['pgbouncer'], 'pgbouncer')
  return found
}

/** Fewer server connections than clients have, so that sessions are shared between transactions. */
const POOL_SIZE = 5

/** A PgBouncer in transaction mode, in front of a PostgreSQL. */
export class PgBouncer {
  readonly port: number
  readonly #folder: string
  #process: ChildProcess | undefined
  log = ''

  private constructor(port: number, folder: string) {
    this.port = port
    this.#folder = folder
  }

  static async start(upstream: number): Promise<PgBouncer> {
    const folder = await mkdtemp(join(tmpdir(), 'baton-pgbouncer-'))
    // It runs as its own user if the tests run as root.
    await chmod(folder, 0o755)
    const bouncer = new PgBouncer(await freePort(), folder)
    const users = join(folder, 'users.txt')
    await writeFile(users, '"postgres" ""\n')
    await writeFile(
      join(folder, 'pgbouncer.ini'),
      [
        ...['[databases]', `* = host=127.0.0.1 port=${upstream}`],
        ...['[pgbouncer]', 'listen_addr = 127.0.0.1', `listen_port = ${bouncer.port}`, 'unix_socket_dir ='],
        ...['auth_type = trust', `auth_file = ${users}`],
        ...['pool_mode = transaction', `default_pool_size = ${POOL_SIZE}`, 'max_client_conn = 500'],
        'server_login_retry = 1',
      ].join('\n'),
    )
    await bouncer.start()
    return bouncer
  }

  async start(): Promise<void> {
    const child = spawn(findPgBouncer(), [join(this.#folder, 'pgbouncer.ini')], {
      ...(await ownerOfServers()),
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    this.#process = child
    child.stderr.on('data', (chunk: Buffer) => {
      this.log = (this.log + chunk.toString()).slice(-20_000)
    })
    while (!(await this.#listens())) {
      if (child.exitCode !== null) throw new Error(`PgBouncer ended: ${this.log}`)
      await sleep(20)
    }
  }

  async kill(): Promise<void> {
    const child = this.#process
    this.#process = undefined
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  }

  async dispose(): Promise<void> {
    await this.kill()
    await rm(this.#folder, { recursive: true, force: true })
  }

  async #listens(): Promise<boolean> {
    const socket = connect(this.port, '127.0.0.1')
    try {
      await once(socket, 'connect')
      return true
    } catch {
      return false
    } finally {
      socket.destroy()
    }
  }
}
