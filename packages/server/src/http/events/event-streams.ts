import type { ServerResponse } from 'node:http'
import { type EventName, HEARTBEAT_SECONDS } from '@baton/protocol'
import type { BatonEvent, Tick } from '../../handoff/events.ts'
import { summariseTask, viewInstance, viewParked } from '../answers/views.ts'

/** Each tick is written once, however many follow and whenever they catch up. */
const written = new WeakMap<Tick, Buffer>()

/**
 * A tick as it goes over the wire. The id stands with the last event alone: a connection that breaks in the middle
 * of a tick resumes before it, and hears the whole of it again. Without events it stands alone: readers remember it
 * and dispatch nothing.
 */
function tickText(tick: Tick): Buffer {
  let text = written.get(tick)
  if (text === undefined) {
    const events = tick.events.map(eventText)
    const last = events.pop() ?? '\n'
    text = Buffer.from(`${events.join('')}id: ${tick.id}\n${last}`)
    written.set(tick, text)
  }
  return text
}

function resetText(id: string): string {
  return `id: ${id}\n${eventText({ kind: 'reset' })}`
}

function eventText(event: BatonEvent): string {
  switch (event.kind) {
    case 'task':
      return named('task', summariseTask(event.row, event.now))
    case 'parked':
      return named('parked', viewParked(event.notice))
    case 'instance':
      return named('instance', viewInstance(event.instance))
    case 'reset':
      return named('reset', {})
  }
}

/** JSON has no raw line breaks, so one data line always holds it. */
function named(name: EventName, data: object): string {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`
}

/** A follower may lag behind by so much before ticks are kept from it. */
const MOST_UNREAD_BYTES = 512 * 1024
/** A follower that reads nothing for so many heartbeats is let go. */
const MOST_BEATS_BEHIND = 2

/**
 * One open event stream. What its reader has not taken yet waits in memory, so there is a bound: beyond it ticks
 * are skipped, and when the reader has caught up it is told to look at everything anew.
 */
export class EventFollower {
  readonly #response: ServerResponse
  #lastId = ''
  #isBehind = false
  #beatsBehind = 0

  constructor(response: ServerResponse) {
    this.#response = response
    response.on('drain', () => this.#caughtUp())
    // A connection that broke is closed by Node; there is nobody to answer.
    response.on('error', () => {})
  }

  tell(tick: Tick): void {
    this.#lastId = tick.id
    if (this.#isBehind) return
    if (this.#response.writableLength > MOST_UNREAD_BYTES) this.#isBehind = true
    else this.#response.write(tickText(tick))
  }

  /** A comment line: proves to both ends, and to proxies between them, that the connection lives. */
  beat(): void {
    if (!this.#isBehind) {
      this.#response.write(':\n\n')
      return
    }
    this.#beatsBehind += 1
    if (this.#beatsBehind > MOST_BEATS_BEHIND) this.#response.destroy()
  }

  end(): void {
    this.#response.end()
    // Whoever does not read would keep the node from closing.
    if (this.#isBehind) this.#response.destroy()
  }

  #caughtUp(): void {
    if (!this.#isBehind) return
    this.#isBehind = false
    this.#beatsBehind = 0
    this.#response.write(resetText(this.#lastId))
  }
}

/** Each costs a connection and at most half a megabyte; beyond this somebody has a loop. */
export const MOST_STREAMS = 1000

/** The event streams that are open on this node. One heartbeat serves them all, and stops with the last. */
export class OpenStreams {
  readonly #followers = new Set<EventFollower>()
  #heartbeat: NodeJS.Timeout | undefined

  get isFull(): boolean {
    return this.#followers.size >= MOST_STREAMS
  }

  add(follower: EventFollower): void {
    this.#followers.add(follower)
    this.#heartbeat ??= setInterval(() => this.#beat(), HEARTBEAT_SECONDS * 1000)
  }

  remove(follower: EventFollower): void {
    this.#followers.delete(follower)
    if (this.#followers.size > 0) return
    clearInterval(this.#heartbeat)
    this.#heartbeat = undefined
  }

  /** They would otherwise go on for ever, and the node wait for them. */
  end(): void {
    for (const follower of this.#followers) follower.end()
  }

  #beat(): void {
    for (const follower of this.#followers) follower.beat()
  }
}
