import { randomUUID } from 'node:crypto'
import type { Connection } from './connection.ts'
import type { Connector } from './connector.ts'
import { MAKE_ROOM } from './presence.ts'
import { statement } from './statement.ts'

/** NOTIFY takes a lock that all commits share: at most one hint per node in this time, on a connection of its own. */
const HINT_MILLIS = 20
const RECONNECT_MILLIS = 500
/** After a gap something may have become ready unheard: those who wait look once. */
const AFTER_A_GAP = 1000

/** A hint that a crash loses is lost anyway. */
const notify = statement(
  'notify',
  `SELECT set_config('synchronous_commit', 'off', true), pg_notify('baton_ready', $1)`,
)

/**
 * Tells the other nodes that partitions became ready, and is told by them. A hint may get lost: it
 * only saves time, and whoever waits also looks now and then.
 */
export class Hints {
  readonly #connector: Connector
  readonly #heard: (readied: number) => void
  readonly #makeRoom: () => void
  readonly #node = randomUUID()
  #connection: Connection | undefined
  #hadGap = false
  #pending = 0
  #timer: NodeJS.Timeout | undefined
  #reconnecting: NodeJS.Timeout | undefined
  #closed = false

  constructor(connector: Connector, heard: (readied: number) => void, makeRoom: () => void) {
    this.#connector = connector
    this.#heard = heard
    this.#makeRoom = makeRoom
  }

  /** The server's process behind it; undefined while nobody would be heard. */
  get processId(): number | undefined {
    return this.#connection?.processId
  }

  async start(): Promise<void> {
    if (this.#closed || !this.#connector.hasHosts) return
    let connection: Connection | undefined
    try {
      connection = await this.#connector.connect()
      connection.onNotification((channel, payload) => {
        if (channel === MAKE_ROOM) this.#makeRoom()
        else this.#receive(payload)
      })
      connection.onLost(() => this.#reconnect())
      await connection.exec(`SET idle_session_timeout = 0; LISTEN baton_ready; LISTEN ${MAKE_ROOM}`)
      this.#connection = connection
      if (this.#closed) await connection.close()
      else if (this.#hadGap) this.#heard(AFTER_A_GAP)
      this.#hadGap = false
    } catch {
      connection?.destroy()
      this.#reconnect()
    }
  }

  /** So many partitions became ready here. */
  tell(readied: number): void {
    if (readied <= 0 || this.#closed) return
    this.#pending += readied
    this.#timer ??= setTimeout(() => this.#send(), HINT_MILLIS)
  }

  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#timer)
    clearTimeout(this.#reconnecting)
    await this.#connection?.close()
  }

  #send(): void {
    this.#timer = undefined
    const readied = this.#pending
    this.#pending = 0
    this.#connection?.run(notify, [`${this.#node} ${readied}`]).catch(() => {})
  }

  #receive(payload: string): void {
    const [node, readied] = payload.split(' ')
    if (node !== this.#node) this.#heard(Number(readied) || 1)
  }

  #reconnect(): void {
    this.#connection = undefined
    if (this.#closed) return
    this.#hadGap = true
    clearTimeout(this.#reconnecting)
    this.#reconnecting = setTimeout(() => void this.start(), RECONNECT_MILLIS)
  }
}
