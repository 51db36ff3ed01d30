import { connect, createServer, type Server, type Socket } from 'node:net'

const DISCARD_ALL = Buffer.from('Q\0\0\0\x10DISCARD ALL\0', 'latin1')
const READY = 'Z'.charCodeAt(0)
const QUERY = 'Q'.charCodeAt(0)
const SYNC = 'S'.charCodeAt(0)
const IDLE = 'I'.charCodeAt(0)

/** Splits a stream of PostgreSQL messages into single ones. */
class Messages {
  #rest = Buffer.alloc(0)

  take(chunk: Buffer): Buffer[] {
    this.#rest = Buffer.concat([this.#rest, chunk])
    const messages: Buffer[] = []
    while (this.#rest.length >= 5) {
      const length = 1 + this.#rest.readUInt32BE(1)
      if (this.#rest.length < length) break
      messages.push(this.#rest.subarray(0, length))
      this.#rest = this.#rest.subarray(length)
    }
    return messages
  }
}

/**
 * What a pooler in transaction mode looks like to its clients: whenever no transaction is open, the session
 * behind the connection loses all its state (settings, prepared statements, advisory locks).
 */
export class ForgetfulPooler {
  readonly #server: Server
  readonly #upstream: number
  readonly #sockets = new Set<Socket>()
  forgot = 0

  private constructor(server: Server, upstream: number) {
    this.#server = server
    this.#upstream = upstream
  }

  static async start(upstream: number): Promise<ForgetfulPooler> {
    const server = createServer()
    const pooler = new ForgetfulPooler(server, upstream)
    server.on('connection', (client) => pooler.#relay(client))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return pooler
  }

  get port(): number {
    const address = this.#server.address()
    if (address === null || typeof address === 'string') throw new Error('the pooler does not listen')
    return address.port
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  #relay(client: Socket): void {
    const server = connect(this.#upstream, '127.0.0.1')
    const asked = new Messages()
    const answered = new Messages()
    const held: Buffer[] = []
    let isStarted = false
    let isForgetting = false
    let underWay = 1
    let isIdle = false
    const end = () => {
      client.destroy()
      server.destroy()
    }
    for (const socket of [client, server]) {
      this.#sockets.add(socket)
      socket.on('error', end)
      socket.on('close', end)
    }
    const forward = (message: Buffer) => {
      if (message[0] === QUERY || message[0] === SYNC) underWay += 1
      server.write(message)
    }
    client.on('data', (chunk) => {
      if (!isStarted) return void server.write(chunk)
      for (const message of asked.take(chunk)) {
        if (isForgetting) held.push(message)
        else if (isIdle && underWay === 0) {
          isForgetting = true
          this.forgot += 1
          server.write(DISCARD_ALL)
          held.push(message)
        } else forward(message)
        isIdle = false
      }
    })
    server.on('data', (chunk) => {
      for (const message of answered.take(chunk)) {
        const isReady = message[0] === READY
        if (!isForgetting) client.write(message)
        if (isReady && isForgetting) {
          isForgetting = false
          for (const waiting of held.splice(0)) forward(waiting)
        } else if (isReady) {
          isStarted = true
          underWay -= 1
          isIdle = message[5] === IDLE
        }
      }
    })
  }
}
