import { readFileSync } from 'node:fs'
import type { Server, Socket } from 'node:net'
import { SetsByKey } from '../../handoff/sets-by-key.ts'
import { networkOfSocket } from '../admission/proxies.ts'
import { lastAnswer } from '../answers/client-errors.ts'
import { intercept } from '../intercept.ts'
import type { ClientLimits, LimitName, ReachedLimits } from './limits.ts'

/** File descriptors reserved for the store, the log, listening sockets, other nodes and the runtime. */
const RESERVED_HANDLES = 128
/** The minimum number of connections, however low the limit on open files is. */
const FEWEST_CONNECTIONS = 16

export function openFilesLimit(): number {
  try {
    const [, limit] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
    return limit === undefined ? Number.POSITIVE_INFINITY : Number(limit)
  } catch {
    return limitByReport()
  }
}

/** For systems without /proc. Creating a report is slow. */
function limitByReport(): number {
  const report = Object.assign(process.report, { excludeNetwork: true })
  const { userLimits } = report.getReport() as { userLimits?: { open_files?: { soft?: unknown } } }
  const limit = Number(userLimits?.open_files?.soft)
  return Number.isFinite(limit) && limit > 0 ? limit : Number.POSITIVE_INFINITY
}

const TOO_MANY_CONNECTIONS = lastAnswer({
  code: 'overloaded',
  detail: 'too many connections are open; try again with fewer connections',
})

/** A refused client can only read the answer if its request was read from the socket meanwhile. */
const LINGER_MILLIS = 500
/** The maximum number of refused connections that stay open. They use reserved file descriptors. */
const MOST_LINGERING = 16

/** Limits the connections, in total and per address, before anything is read from them. */
export class ConnectionGate {
  readonly #reached: ReachedLimits
  readonly #most: number
  readonly #mostPerAddress: number
  readonly #limitInAll: LimitName
  /** Proxies are exempt from the limit per address, because they have many clients. */
  readonly #isProxy: (address: string) => boolean
  readonly #byAddress = new SetsByKey<string, Socket>()
  readonly #sockets = new Set<Socket>()
  /** Connections of other nodes. */
  readonly #exempt = new WeakSet<Socket>()
  #encrypted: Set<Socket> | undefined
  #lingering = 0

  constructor(
    { connections, connectionsPerAddress }: Pick<ClientLimits, 'connections' | 'connectionsPerAddress'>,
    reached: ReachedLimits,
    isProxy: (address: string) => boolean,
  ) {
    this.#reached = reached
    this.#isProxy = isProxy
    // Beyond the limit on open files the kernel refuses connections silently, and the store cannot open files.
    this.#most = Math.min(connections, Math.max(FEWEST_CONNECTIONS, openFilesLimit() - RESERVED_HANDLES))
    this.#limitInAll = this.#most < connections ? 'file-handles' : 'connections'
    // If the limit on open files lowers the total, the limit per address is lowered in proportion.
    const share = Math.ceil((connectionsPerAddress * this.#most) / connections)
    this.#mostPerAddress = Math.min(connectionsPerAddress, share)
  }

  get count(): number {
    return this.#sockets.size
  }

  /** The sockets that responses are written to: with TLS, the TLS sockets. */
  get sockets(): ReadonlySet<Socket> {
    return this.#encrypted ?? this.#sockets
  }

  /** Checks connections of `server` before its own listeners get them. */
  interceptConnections(server: Server): void {
    // Over TLS, a response would need a handshake, and a flood of connections aims at that cost.
    const isEncrypted = 'setSecureContext' in server
    if (isEncrypted) this.#encrypted = secureSocketsOf(server)
    intercept(server, 'connection', (socket, passOn) => {
      const refusal = this.#enter(socket)
      if (refusal === undefined) passOn()
      else if (isEncrypted) {
        this.#reached.note(refusal, socket.remoteAddress)
        socket.destroy()
      } else this.refuse(socket, refusal, TOO_MANY_CONNECTIONS)
    })
  }

  /** The connection no longer counts for its address, only in total. */
  exemptFromAddressLimit(socket: Socket): void {
    if (this.#exempt.has(socket)) return
    this.#exempt.add(socket)
    const address = networkOfSocket(socket) ?? 'gone'
    // With TLS, `socket` is the encrypted one on top of the counted one.
    for (const counted of this.#byAddress.get(address) ?? [])
      if (counted.remotePort === socket.remotePort) this.#byAddress.remove(address, counted)
  }

  /** Returns the limit that refuses the connection; undefined when it is accepted. */
  #enter(socket: Socket): LimitName | undefined {
    const address = networkOfSocket(socket) ?? 'gone'
    const count = this.#byAddress.get(address)?.size ?? 0
    if (count >= this.#mostPerAddress && !this.#isProxy(address)) return 'address-connections'
    if (this.#sockets.size >= this.#most && !this.#makeRoom(count + 1)) return this.#limitInAll
    this.#sockets.add(socket)
    this.#byAddress.add(address, socket)
    socket.once('close', () => this.#leave(address, socket))
    return undefined
  }

  #leave(address: string, socket: Socket): void {
    this.#sockets.delete(socket)
    this.#byAddress.remove(address, socket)
  }

  /** Closes the oldest connection of the address with the most, so that a flood locks nobody else out. */
  #makeRoom(fewer: number): boolean {
    let most: [address: string, sockets: Set<Socket>] | undefined
    for (const entry of this.#byAddress) if (entry[1].size > (most?.[1].size ?? fewer)) most = entry
    const [oldest] = most?.[1] ?? []
    if (most === undefined || oldest === undefined) return false
    this.#reached.note(this.#limitInAll, oldest.remoteAddress)
    this.#leave(most[0], oldest)
    oldest.destroy()
    return true
  }

  /** Sends the answer, unless many are being refused, and closes the connection. What arrives is discarded. */
  refuse(socket: Socket, limit: LimitName, answer: string): void {
    this.#reached.note(limit, socket.remoteAddress)
    socket.on('error', () => {})
    if (this.#lingering >= MOST_LINGERING) {
      socket.destroy()
      return
    }
    this.#lingering += 1
    const timer = setTimeout(() => socket.destroy(), LINGER_MILLIS)
    socket.once('close', () => {
      clearTimeout(timer)
      this.#lingering -= 1
    })
    socket.resume().end(answer)
  }
}

function secureSocketsOf(server: Server): Set<Socket> {
  const sockets = new Set<Socket>()
  server.on('secureConnection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  return sockets
}
