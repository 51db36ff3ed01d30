import { CannotConnect, type FaultyHost } from './cannot-connect.ts'
import { faultOf, IsStandby } from './connect-faults.ts'
import { Connection, type ConnectionOptions } from './connection.ts'
import { parseDatabaseUrl } from './database-url.ts'
import { statement } from './statement.ts'

/** A pooler in between makes up a number of its own for the process. */
const whoAnswers = statement('who-answers', 'SELECT pg_is_in_recovery() AS standby, pg_backend_pid() AS pid')

/** Opens connections to whichever of the hosts takes writes, beginning with the one that did last. */
export class Connector {
  readonly #hosts: readonly string[]
  readonly #options: ConnectionOptions
  #preferred = 0

  constructor(hosts: readonly string[], options: ConnectionOptions) {
    this.#hosts = hosts
    this.#options = options
  }

  get hasHosts(): boolean {
    return this.#hosts.length > 0
  }

  /** Rejects with CannotConnect, whatever the cause. */
  async connect(): Promise<Connection> {
    const faults: FaultyHost[] = []
    for (let turn = 0; turn < this.#hosts.length; turn += 1) {
      const position = (this.#preferred + turn) % this.#hosts.length
      const host = this.#hosts[position] ?? ''
      try {
        const connection = await this.#open(host)
        this.#preferred = position
        return connection
      } catch (error) {
        faults.push({ ...faultOf(error), where: parseDatabaseUrl(host).where })
      }
    }
    throw new CannotConnect(faults)
  }

  async #open(url: string): Promise<Connection> {
    const connection = await Connection.open(url, this.#options)
    const [answer] = await connection.run(whoAnswers).catch((error: unknown) => {
      connection.destroy()
      throw error
    })
    connection.processId = answer?.['pid'] as number
    if (answer?.['standby'] !== true) return connection
    await connection.close()
    throw new IsStandby()
  }
}
