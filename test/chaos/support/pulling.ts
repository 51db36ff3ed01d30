import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { PullAnswer } from '@baton/protocol'
import type { Chance } from './chance.ts'
import type { Answer } from './checked-client.ts'
import type { FleetNode } from './fleet.ts'
import type { AskedPull, SeenLease } from './history.ts'
import { requestKinds } from './request-kinds.ts'
import type { Scene } from './scene.ts'

/** A pull and the form of its request. */
export interface PullTerms {
  readonly asked: AskedPull
  readonly headers: Readonly<Record<string, string>>
}

const CALM_BATCH = 200
/**
 * Weights in percent, and batch sizes with inclusive bounds. Large ones are rarer, but make up most of the
 * partitions.
 */
const BATCHES = [
  { below: 40, least: 1, most: 5 },
  { below: 80, least: 1, most: 50 },
  { below: 95, least: 50, most: 300 },
  { below: 100, least: 300, most: 1000 },
]
const BUDGETS = [300, 6000, 200_000]

const KEYED = 0.85
/** Shares of pulls with a key that are sent twice at the same time, and again after the answer. */
const TWIN = 0.15
const AGAIN = 0.15
/** How often one of the last pulls is sent again, whatever happened to its leases. */
const LATER = 0.3
const REMEMBERED = 12

/**
 * How a worker pulls: with and without a key, repeatedly with the same key, and not always on the same node.
 */
export class Pulling {
  readonly #scene: Scene
  readonly #name: string
  readonly #chance: Chance
  readonly #remembered: PullTerms[] = []

  constructor(scene: Scene, name: string, chance: Chance) {
    this.#scene = scene
    this.#name = name
    this.#chance = chance
  }

  terms(): PullTerms {
    const chance = this.#chance
    const { isStormy, size } = this.#scene
    const batch = isStormy ? this.#batch() : CALM_BATCH
    const records =
      isStormy && chance.happens(0.12 * size.contrary) ? chance.between(1, chance.pick(BUDGETS)) : null
    const preferences = [`batch=${batch}`]
    if (records !== null) preferences.push(`records=${records}`)
    if (chance.happens(0.3)) preferences.push('wait=1')
    // A unique key, also across runs with the same seed.
    const key = chance.happens(KEYED) ? randomUUID() : null
    return {
      asked: { batch, records, key, sentAt: Date.now() },
      headers: {
        ...{ 'x-instance-id': this.#name, prefer: preferences.join(', ') },
        ...(key === null ? {} : { 'idempotency-key': key }),
      },
    }
  }

  /** Returns the leases that were not seen before. */
  async pull(node: FleetNode): Promise<SeenLease[]> {
    const { client, isStormy, size } = this.#scene
    const chance = this.#chance
    const terms = this.terms()
    const isKeyed = terms.asked.key !== null
    const hangUpAfter = isStormy && chance.happens(0.06 * size.contrary) ? chance.below(15) : undefined
    const request = { path: '/pull', headers: terms.headers }
    const hasTwin = isStormy && isKeyed && chance.happens(TWIN)
    const [first, twin] = await Promise.all([
      client.send(node, requestKinds.pull, { ...request, hangUpAfter }),
      hasTwin ? client.send(client.anyNode(chance), requestKinds.pull, request) : undefined,
    ])
    if (isKeyed) this.#remember(terms)
    // Without a key, the leases of a lost answer are lost.
    const isRepeated = isKeyed && (first === undefined || (isStormy && chance.happens(AGAIN)))
    const repeat = isRepeated ? await this.#repeated(terms) : undefined
    return [first, twin, repeat].flatMap((answer) => this.#noted(answer, terms))
  }

  /** Repeats one of the last pulls: its leases may be valid, settled, ended, or held by other workers. */
  async pullLater(): Promise<SeenLease[]> {
    if (!this.#scene.isStormy || this.#remembered.length === 0 || !this.#chance.happens(LATER)) return []
    const terms = this.#chance.pick(this.#remembered)
    return this.#noted(await this.#repeated(terms), terms)
  }

  async #repeated({ headers }: PullTerms): Promise<Answer<PullAnswer>> {
    if (this.#chance.happens(0.1)) await sleep(this.#chance.below(this.#scene.history.leaseMillis))
    return this.#scene.client.sendUntilAnswered(requestKinds.pull, { path: '/pull', headers }, this.#chance)
  }

  #noted(answer: Answer<PullAnswer> | undefined, { asked }: PullTerms): SeenLease[] {
    if (answer?.body === undefined) return []
    return this.#scene.history.pulled(answer.body.partitions, answer, asked).fresh
  }

  #remember(terms: PullTerms): void {
    this.#remembered.push(terms)
    if (this.#remembered.length > REMEMBERED) this.#remembered.shift()
  }

  #batch(): number {
    const draw = this.#chance.below(100)
    const { least, most } = BATCHES.find(({ below }) => draw < below) ?? { least: 1, most: 1 }
    return this.#chance.between(least, most)
  }
}
