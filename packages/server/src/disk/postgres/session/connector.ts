import pg from 'pg'
import { CannotConnect, type FaultyHost } from './cannot-connect.ts'
import { faultOf, IsStandby } from './connect-faults.ts'
import { Connection, type ConnectionOptions } from './connection.ts'
import { parseDatabaseUrl } from './database-url.ts'

/**
 * Where the driver will look, for people: host, port and database, and neither user nor password. The driver is asked
 * because what a URL leaves out it takes from the environment, or makes up.
 */
export function describeServer(url: string): string {
  return parseDatabaseUrl(url)
    .hosts.map((connectionString) => {
      const { host, port, database } = new pg.Client({ connectionString })
      return `${host}:${port}/${database}`
    })
    .join(', ')
}

/** Opens connections to whichever of the hosts takes writes, beginning with the one that did last. */
export class Connector {
  readonly #hosts: readonly string[]
  #preferred = 0

  constructor(hosts: readonly string[]) {
    this.#hosts = hosts
  }

  /** Rejects with CannotConnect, whatever the cause. */
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
