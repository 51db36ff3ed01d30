import { HEARTBEAT_SECONDS } from '@baton/protocol'
import type { EventFollower } from './event-follower.ts'

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
