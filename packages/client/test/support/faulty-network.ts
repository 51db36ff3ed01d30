import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'

/** The network between a client and a service, with faults injected by a test. */
export class FaultyNetwork {
  readonly #server: Server
  readonly #target: number
  readonly #open = new Set<Socket>()
  #answersToLose = 0
  #silent = false
  #withholding = false
  /** The number of lost answers. */
  lost = 0

  private constructor(target: number) {
    this.#target = target
    this.#server = createServer((client) => this.#connect(client))
  }

  static async to(port: number): Promise<FaultyNetwork> {
    const network = new FaultyNetwork(port)
    network.#server.listen(0, '127.0.0.1')
    await once(network.#server, 'listening')
    onTestFinished(() => {
      network.#server.close()
      for (const socket of network.#open) socket.destroy()
    })
    return network
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /**
   * The service receives and answers the next requests, but the connection breaks before the answer arrives.
   */
  loseAnswers(count: number): void {
    this.#answersToLose = count
  }

  /** Requests arrive and are answered, but the answers never come back; the connections stay open. */
  withholdAnswers(withholding: boolean): void {
    this.#withholding = withholding
  }

  /** No data passes in either direction, and no side is notified: packets disappear. */
  fallSilent(): void {
    this.#silent = true
  }

  /** Data passes again. Lost packets stay lost: their connections are broken. */
  recover(): void {
    this.#silent = false
    for (const socket of this.#open) socket.destroy()
  }

  #connect(client: Socket): void {
    const service = connect(this.#target, '127.0.0.1')
    for (const socket of [client, service]) {
      this.#open.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        this.#open.delete(socket)
        client.destroy()
        service.destroy()
      })
    }
    client.on('data', (bytes) => {
      if (!this.#silent) service.write(bytes)
    })
    service.on('data', (bytes) => {
      if (this.#silent || this.#withholding) return
      if (this.#answersToLose > 0) {
        this.#answersToLose -= 1
        this.lost += 1
        client.destroy()
      } else client.write(bytes)
    })
  }
}
