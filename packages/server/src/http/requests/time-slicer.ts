import type { Socket } from 'node:net'
import { SetsByKey } from '../../handoff/sets-by-key.ts'
import { networkOfSocket } from '../admission/proxies.ts'

/** A small piece of bulk work. Returns whether it must be called again. */
type Step = () => boolean

/**
 * How much of each iteration of the event loop bulk work may take: at least this time, and this share of a
 * long iteration, so that a legitimate large call-back is checked in time on a busy node. A step that was
 * begun is finished.
 */
const LEAST_MILLIS = 0.25
const SHARE_OF_ITERATION = 0.1

interface Work {
  readonly socket: Socket
  readonly step: Step
}

/**
 * Spreads work over iterations of the event loop: checks of large bodies, and responses of views. So floods
 * of them take a small part of each iteration, and pulls and settles have the rest. Addresses alternate, and
 * a loop with nothing else to do runs bulk work at full speed.
 */
export class TimeSlicer {
  /** Queued work by address. The first address is next. */
  readonly #waiting = new SetsByKey<string, Work>()
  #isScheduled = false
  #isRunning = false
  #iterationBegan = 0
  /** When the share of this iteration is used up. */
  #until = 0

  /** Calls `step` in this iteration or a later one, unless the connection is closed by then. */
  add(socket: Socket, step: Step): void {
    this.#enqueue({ socket, step })
    if (!this.#isScheduled) {
      this.#isScheduled = true
      setImmediate(this.#nextIteration)
      this.#iterationBegan = performance.now()
      this.#until = this.#iterationBegan + LEAST_MILLIS
    }
    if (!this.#isRunning && performance.now() < this.#until) this.#run()
  }

  /** How much work of the same address waits. */
  waitingBeside(socket: Socket): number {
    return this.#waiting.get(networkOfSocket(socket) ?? 'gone')?.size ?? 0
  }

  readonly #nextIteration = (): void => {
    if (this.#waiting.size === 0) {
      this.#isScheduled = false
      return
    }
    setImmediate(this.#nextIteration)
    const now = performance.now()
    this.#until = now + Math.max(LEAST_MILLIS, SHARE_OF_ITERATION * (now - this.#iterationBegan))
    this.#iterationBegan = now
    this.#run()
  }

  #run(): void {
    this.#isRunning = true
    do {
      const work = this.#next()
      if (work === undefined) break
      if (work.step()) this.#enqueue(work)
    } while (performance.now() < this.#until)
    this.#isRunning = false
  }

  #enqueue(work: Work): void {
    this.#waiting.add(networkOfSocket(work.socket) ?? 'gone', work)
  }

  #next(): Work | undefined {
    for (const [address, line] of this.#waiting) {
      this.#waiting.delete(address)
      for (const work of line) {
        line.delete(work)
        if (work.socket.destroyed) continue
        if (line.size > 0) this.#waiting.set(address, line)
        return work
      }
    }
    return undefined
  }
}
