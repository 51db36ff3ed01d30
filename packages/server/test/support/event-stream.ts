import { onTestFinished } from 'vitest'
import type { TestApp } from './test-app.ts'

export interface SeenEvent {
  readonly id: string | undefined
  readonly name: string
  // biome-ignore lint/suspicious/noExplicitAny: tests reach into data whose schema is checked elsewhere
  readonly data: Record<string, any>
}

/** Reads an event stream as a browser would, and lets a test wait for what it expects. */
export class EventStream {
  readonly headers: Headers
  readonly seen: SeenEvent[] = []
  readonly ended: Promise<void>
  readonly #controller: AbortController
  readonly #opening = Promise.withResolvers<string>()
  #arrived = Promise.withResolvers<void>()
  #looked = 0

  private constructor(response: Response, controller: AbortController) {
    this.headers = response.headers
    this.#controller = controller
    this.ended = this.#read(response).catch(() => {})
  }

  static async open(url: string, headers: Record<string, string> = {}): Promise<EventStream> {
    const controller = new AbortController()
    onTestFinished(() => controller.abort())
    const response = await fetch(`${url}/events`, { headers, signal: controller.signal })
    if (!response.ok) throw new Error(`the stream was refused with ${response.status}`)
    return new EventStream(response, controller)
  }

  close(): void {
    this.#controller.abort()
  }

  /** The next matching event of that name; earlier ones are skipped. */
  async next(name: string, fits: (event: SeenEvent) => boolean = () => true): Promise<SeenEvent> {
    return this.#find((event) => event.name === name && fits(event))
  }

  async nextWithId(): Promise<SeenEvent & { readonly id: string }> {
    return (await this.#find(({ id }) => id !== undefined)) as SeenEvent & { readonly id: string }
  }

  /** Where the stream begins: an id before any event. */
  openingId(): Promise<string> {
    return this.#opening.promise
  }

  /** Waits until the node has polled once: what it finds first is not reported. */
  async settled(baton: TestApp): Promise<void> {
    await baton.callBack({
      taskId: 'look-round',
      computeTableName: 'results.none',
      partition_name: 'look-round-9-0',
      record_count: 0,
      priorityLevel: 9,
    })
    await this.next('task')
  }

  async #find(fits: (event: SeenEvent) => boolean): Promise<SeenEvent> {
    while (true) {
      const event = this.seen[this.#looked]
      if (event === undefined) await this.#arrived.promise
      else {
        this.#looked += 1
        if (fits(event)) return event
      }
    }
  }

  async #read(response: Response): Promise<void> {
    let unread = ''
    for await (const text of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      const blocks = (unread + text).split('\n\n')
      unread = blocks.pop() ?? ''
      for (const block of blocks) this.#take(block)
    }
  }

  #take(block: string): void {
    const fields = new Map(
      block.split('\n').map((line) => [line.split(': ', 1)[0], line.replace(/^[^:]*: /, '')]),
    )
    const name = fields.get('event')
    const id = fields.get('id')
    if (name === undefined) {
      if (id !== undefined) this.#opening.resolve(id)
      return
    }
    this.seen.push({ id, name, data: JSON.parse(fields.get('data') ?? 'null') })
    const arrived = this.#arrived
    this.#arrived = Promise.withResolvers<void>()
    arrived.resolve()
  }
}
