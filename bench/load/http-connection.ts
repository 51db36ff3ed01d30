import { connect, type Socket } from 'node:net'

export interface Answer {
  status: number
  body: string
}

type OnAnswer = (status: number, body: string) => void

/**
 * One keep-alive connection with one request in flight at a time. Client and server share the machine's
 * cores, so the client's processor time is missing from the server: a hand-written HTTP/1.1 exchange costs a
 * fraction of an HTTP library's (see the README for the comparison). It supports exactly what the measured
 * servers send: ASCII answers with a Content-Length.
 */
export class HttpConnection {
  readonly #socket: Socket
  #buffered = ''
  #onAnswer: OnAnswer | undefined
  #onBroken: ((error: Error) => void) | undefined

  static open(url: string): Promise<HttpConnection> {
    const { hostname, port } = new URL(url)
    return new Promise((resolve, reject) => {
      const connection: HttpConnection = new HttpConnection(hostname, Number(port), reject, () =>
        resolve(connection),
      )
    })
  }

  private constructor(host: string, port: number, onBroken: (error: Error) => void, onOpen: () => void) {
    this.#onBroken = onBroken
    this.#socket = connect({
      host,
      port,
      noDelay: true,
      // One buffer reused for every read; the callback copies what it needs into a string.
      onread: {
        buffer: Buffer.allocUnsafe(16_384),
        callback: (length, buffer) => {
          this.#read((buffer as Buffer).toString('latin1', 0, length))
          return true
        },
      },
    })
    this.#socket.once('connect', onOpen)
    this.#socket.on('error', (error) => this.#break(error))
    this.#socket.on('close', () => this.#break(new Error('the server closed the connection')))
  }

  /** Takes a callback instead of returning a promise, because the hot loops call it very often. */
  send(request: string | Buffer, onAnswer: OnAnswer, onBroken: (error: Error) => void): void {
    this.#onAnswer = onAnswer
    this.#onBroken = onBroken
    if (typeof request === 'string') this.#socket.write(request, 'latin1')
    else this.#socket.write(request)
  }

  exchange(request: string | Buffer): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.send(request, (status, body) => resolve({ status, body }), reject)
    })
  }

  close(): void {
    this.#onAnswer = undefined
    this.#onBroken = undefined
    this.#socket.destroy()
  }

  #break(error: Error): void {
    const onBroken = this.#onBroken
    this.#onBroken = undefined
    onBroken?.(error)
  }

  #read(text: string): void {
    const received = this.#buffered === '' ? text : this.#buffered + text
    const headEnd = received.indexOf('\r\n\r\n')
    if (headEnd === -1) {
      this.#buffered = received
      return
    }
    const bodyStart = headEnd + 4
    const bodyEnd = bodyStart + contentLength(received, headEnd)
    if (received.length < bodyEnd) {
      this.#buffered = received
      return
    }
    this.#buffered = ''
    const onAnswer = this.#onAnswer
    this.#onAnswer = undefined
    this.#onBroken = undefined
    // "HTTP/1.1 200 OK": the status is at 9 to 12.
    onAnswer?.(Number(received.slice(9, 12)), received.slice(bodyStart, bodyEnd))
  }
}

function contentLength(received: string, headEnd: number): number {
  const at = received.indexOf('\r\ncontent-length: ')
  if (at !== -1 && at < headEnd) {
    return Number(received.slice(at + 18, received.indexOf('\r\n', at + 18)))
  }
  const match = /\r\ncontent-length:\s*(\d+)/i.exec(received.slice(0, headEnd + 2))
  if (!match) throw new Error(`an answer without Content-Length:\n${received.slice(0, headEnd)}`)
  return Number(match[1])
}
