import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { CloudEvent } from '@baton/protocol'
import { Webhook } from 'standardwebhooks'
import { expect, onTestFinished } from 'vitest'

export interface Received {
  readonly headers: IncomingHttpHeaders
  readonly text: string
  readonly event: CloudEvent
}

/** What it does with a request; null answers 204. */
export type Behaviour = (
  received: Received,
  response: ServerResponse,
  request: IncomingMessage,
) => number | null | undefined

/** A real receiver of webhooks on its own port, for the duration of a test. */
export class Receiver {
  /** All requests, including those that were answered with a failure. */
  readonly received: Received[] = []
  /** Requests that were answered 2xx. */
  readonly taken: Received[] = []
  behave: Behaviour = () => 204
  /** Errors of signatures, if `verifyWith` was called. */
  readonly unverified: string[] = []
  #verifier: Webhook | undefined
  #server = createServer((request, response) => this.#serve(request, response))
  #port = 0

  static async start(behave: Behaviour = () => 204): Promise<Receiver> {
    const receiver = new Receiver()
    receiver.behave = behave
    await receiver.up()
    onTestFinished(() => receiver.down())
    return receiver
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}/hooks`
  }

  get port(): number {
    return this.#port
  }

  /** Checks each request on arrival: the time of a signature is valid for five minutes. */
  verifyWith(secret: string): void {
    this.#verifier = new Webhook(secret)
  }

  /** Accepts connections, on the same port as before. */
  async up(): Promise<void> {
    this.#server = createServer((request, response) => this.#serve(request, response))
    await new Promise<void>((resolve) => this.#server.listen(this.#port, '127.0.0.1', resolve))
    this.#port = (this.#server.address() as AddressInfo).port
  }

  /** Refuses connections. */
  async down(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve))
    this.#server.closeAllConnections()
    await closed
  }

  /** Each event once, in the order in which they were first accepted. */
  get firstTaken(): CloudEvent[] {
    const events = new Map<string, CloudEvent>()
    for (const { event } of this.taken) if (!events.has(event.id)) events.set(event.id, event)
    return [...events.values()]
  }

  /** The accepted events of each task, in the order of their first acceptance. */
  get sequences(): Record<string, string[]> {
    const byTask = Object.groupBy(this.firstTaken, ({ subject }) => subject)
    return Object.fromEntries(
      Object.entries(byTask).map(([task, events]) => [task, (events ?? []).map(({ sequence }) => sequence)]),
    )
  }

  expectInOrder(): void {
    for (const sequence of Object.values(this.sequences)) expect(sequence).toEqual(sequence.toSorted())
  }

  /** Every event was signed with this secret, as Standard Webhooks specifies. */
  expectSigned(secret: string): void {
    for (const { text, headers } of this.received)
      expect(new Webhook(secret).verify(text, headers as Record<string, string>)).toEqual(JSON.parse(text))
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    let text = ''
    request.on('data', (chunk: Buffer) => {
      text += chunk.toString()
    })
    request.on('end', () => {
      const received = { headers: request.headers, text, event: JSON.parse(text) as CloudEvent }
      this.received.push(received)
      try {
        this.#verifier?.verify(text, request.headers as Record<string, string>)
      } catch (error) {
        this.unverified.push(String(error))
      }
      const status = this.behave(received, response, request)
      if (status === null || status === undefined) return
      if (status >= 200 && status < 300) this.taken.push(received)
      response.writeHead(status).end()
    })
  }
}
