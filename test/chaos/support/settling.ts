import type { Outcome } from '@baton/protocol'
import type { NodeProcess } from '../../postgres/support/node-process.ts'
import type { Chance } from './chance.ts'
import type { SeenLease } from './history.ts'
import type { PullTerms } from './pull-terms.ts'
import { questions } from './questions.ts'
import type { Scene } from './scene.ts'

/** How one worker settles: until it is answered, sometimes twice at the same time, not always where it pulled. */
export class Settling {
  readonly #scene: Scene
  readonly #name: string
  readonly #chance: Chance

  constructor(scene: Scene, name: string, chance: Chance) {
    this.#scene = scene
    this.#name = name
    this.#chance = chance
  }

  async settle(leases: readonly SeenLease[], outcome: Outcome, from: NodeProcess): Promise<void> {
    await this.#send(leases, outcome, from, undefined)
  }

  async settleAndPull(
    leases: readonly SeenLease[],
    from: NodeProcess,
    terms: PullTerms,
  ): Promise<SeenLease[]> {
    return this.#send(leases, 'done', from, terms)
  }

  async #send(
    leases: readonly SeenLease[],
    outcome: Outcome,
    from: NodeProcess,
    terms: PullTerms | undefined,
  ): Promise<SeenLease[]> {
    if (leases.length === 0) return []
    const { asking, history } = this.#scene
    const chance = this.#chance
    const request = {
      path: '/settle',
      headers: { 'x-instance-id': this.#name, ...terms?.headers },
      body: leases.map((lease) => this.#settlement(lease, outcome)),
    }
    history.settling(leases, outcome)
    const nodes = [chance.happens(0.5) ? from : asking.anyNode(chance)]
    if (chance.happens(0.05)) nodes.push(asking.anyNode(chance))
    const answers = await Promise.all(
      nodes.map((node) => asking.demand(questions.settle, request, chance, node)),
    )
    return answers.flatMap((answer) => {
      history.settled(leases, outcome, answer.body, answer)
      if (terms === undefined) return []
      return history.pulled(answer.body.partitions ?? [], answer, terms.batch, terms.key)
    })
  }

  #settlement({ id, partition }: SeenLease, outcome: Outcome): object {
    const chance = this.#chance
    if (outcome === 'failed')
      return {
        ...{ leaseId: id, outcome, reason: 'as chance has it' },
        ...(chance.happens(0.3) ? { retryAfterSeconds: 0 } : {}),
        ...(chance.happens(0.1) ? { final: true } : {}),
      }
    const isReported = outcome === 'done' && chance.happens(0.3)
    return { leaseId: id, outcome, ...(isReported ? { records: partition.record_count } : {}) }
  }
}
