import { Channel } from './channel.ts'
import type { Connector } from './connector.ts'

/** Loads, views, and rows of call-backs that do not count yet. */
const BESIDE = 3

export interface Timeouts {
  readonly connectMillis: number
  /** Everything waits for an append that is under way, so a connection that says nothing is given up soon. */
  readonly appendMillis: number
  readonly answerMillis: number
}

/** The connections of a node: a small fixed number, each opened when it is first needed. */
export class Channels {
  readonly append: Channel
  readonly flush: Channel
  readonly #beside: readonly Channel[]

  constructor(connector: Connector, { connectMillis, appendMillis, answerMillis }: Timeouts) {
    const channel = (millis: number) => new Channel(connector, { connectMillis, answerMillis: millis })
    this.append = channel(appendMillis)
    this.flush = channel(answerMillis)
    this.#beside = Array.from({ length: BESIDE }, () => channel(answerMillis))
  }

  /** Of those for everything else, the one with least to do. */
  get beside(): Channel {
    return this.#beside.reduce((least, channel) => (channel.underWay < least.underWay ? channel : least))
  }

  async close(): Promise<void> {
    await Promise.all([this.append, this.flush, ...this.#beside].map((channel) => channel.close()))
  }
}
