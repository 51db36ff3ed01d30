import { once } from 'node:events'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'
import { onTestFinished } from 'vitest'
import type { App } from '../../src/app.ts'
import { type Answer, expectProblem } from './test-app.ts'

/** A client that sends arbitrary bytes and reads what comes back, answer by answer. */
export class RawConnection {
  readonly socket: Socket
  #received = Buffer.alloc(0)
  #ended = false

  private constructor(socket: Socket) {
    this.socket = socket
    socket.on('data', (chunk: Buffer) => {
      this.#received = Buffer.concat([this.#received, chunk])
    })
    socket.on('close', () => {
      this.#ended = true
    })
    socket.on('error', () => {})
  }

  static open(port: number): Promise<RawConnection> {
    return RawConnection.#over(connect({ host: '127.0.0.1', port }), 'connect')
  }

  static openTls(port: number, options: ConnectionOptions): Promise<RawConnection> {
    return RawConnection.#over(connectTls({ host: '127.0.0.1', port, ...options }), 'secureConnect')
  }

  static async #over(socket: Socket, connected: string): Promise<RawConnection> {
    const connection = new RawConnection(socket)
    await once(socket, connected)
    onTestFinished(() => {
      connection.socket.destroy()
    })
    return connection
  }

  send(bytes: string | Buffer): void {
    this.socket.write(bytes)
  }

  /** The next answer, with its body by Content-Length. Fails when the connection ends before. */
  async answer(): Promise<Answer> {
    while (true) {
      const answer = this.#take()
      if (answer !== undefined) {
        if (answer.status >= 400 && answer.text !== '') expectProblem(answer)
        return answer
      }
      if (this.#ended)
        throw new Error(`the connection ended after ${JSON.stringify(this.#received.toString())}`)
      await this.#moved()
    }
  }

  async closed(): Promise<void> {
    while (!this.#ended) await this.#moved()
  }

  #moved(): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        this.socket.off('data', wake).off('close', wake)
        resolve()
      }
      this.socket.on('data', wake).on('close', wake)
    })
  }

  #take(): Answer | undefined {
    const headEnd = this.#received.indexOf('\r\n\r\n')
    if (headEnd === -1) return undefined
    const [statusLine = '', ...lines] = this.#received.subarray(0, headEnd).toString('latin1').split('\r\n')
    const headers = Object.fromEntries(
      lines.map((line) => {
        const colon = line.indexOf(':')
        return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]
      }),
    )
    const bodyEnd = headEnd + 4 + Number(headers['content-length'] ?? 0)
    if (this.#received.length < bodyEnd) return undefined
    const text = this.#received.subarray(headEnd + 4, bodyEnd).toString()
    this.#received = this.#received.subarray(bodyEnd)
    const body = text !== '' && headers['content-type']?.includes('json') ? JSON.parse(text) : undefined
    return { status: Number(statusLine.split(' ')[1]), headers, text, body }
  }
}

/** Lets the service listen on a free port of the loopback interface. */
export async function listening({ http }: App): Promise<number> {
  await http.listen({ host: '127.0.0.1', port: 0 })
  return (http.server.address() as AddressInfo).port
}

/** A request with a body of JSON. */
export function postBytes(
  path: string,
  body: string,
  headers: Readonly<Record<string, string>> = {},
): string {
  const given = {
    Host: 'localhost',
    'Content-Type': 'application/json',
    'Content-Length': String(Buffer.byteLength(body)),
    ...headers,
  }
  const lines = Object.entries(given).map(([name, value]) => `${name}: ${value}\r\n`)
  return `POST ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body}`
}

export function pullBytes(headers: Readonly<Record<string, string>> = {}): string {
  const lines = Object.entries({ Host: '127.0.0.1', ...headers }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  )
  return `GET /pull HTTP/1.1\r\n${lines.join('')}\r\n`
}
