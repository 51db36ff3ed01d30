import pg from 'pg'
import { CannotConnect, type FaultyHost } from './cannot-connect.ts'
import { faultOf, IsStandby } from './connect-faults.ts'
import { Connection, type ConnectionOptions } from './connection.ts'
import { parseDatabaseUrl } from './database-url.ts'

/**
 * The servers of a URL for messages: host, port and database, without user and password. It takes them from
 * the driver, because parts that the URL leaves out come from the environment or from the driver's defaults.
 */
export function describeServer(url: string): string {
  return parseDatabaseUrl(url)
    .hosts.map((connectionString) => {
      const { host, port, database } = new pg.Client({ connectionString })
      return `${host}:${port}/${database}`
    })
    .join(', ')
}

/** Opens connections to the first host that takes writes, starting with the host that did last time. */
export class Connector {
  readonly #hosts: readonly string[]
  #preferred = 0

  constructor(hosts: readonly string[]) {
    this.#hosts = hosts
  }

  /** Always rejects with CannotConnect. */
  async connect(options: ConnectionOptions): Promise<Connection> {
    const faults: FaultyHost[] = []
    for (let turn = 0; turn < this.#hosts.length; turn += 1) {
      const position = (this.#preferred + turn) % this.#hosts.length
      const host = this.#hosts[position] ?? ''
      try {
        const connection = await open(host, options)
        this.#preferred = position
        return connection
      } catch (error) {
        faults.push({ ...faultOf(error), where: parseDatabaseUrl(host).where })
      }
    }
    throw new CannotConnect(faults)
  }
}

async function open(url: string, options: ConnectionOptions): Promise<Connection> {
  const connection = await Connection.open(url, options)
  const [answer] = await connection
    .run({ text: 'SELECT pg_is_in_recovery() AS standby' })
    .catch((error: unknown) => {
      connection.destroy()
      throw error
    })
  if (answer?.['standby'] !== true) return connection
  await connection.close()
  throw new IsStandby()
}
