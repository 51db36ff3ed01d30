import type { Outcome } from '@baton/protocol'
import type { Chance } from './chance.ts'
import type { FleetNode } from './fleet.ts'
import type { SeenLease } from './history.ts'
import type { PullTerms } from './pulling.ts'
import { requestKinds } from './request-kinds.ts'
import type { Scene } from './scene.ts'

/**
 * How often a settle is sent twice at the same time, and again after the answer; more often with a key, which
 * must not take twice.
 */
const TWIN = 0.05
const AGAIN = { withKey: 0.15, without: 0.03 }

/**
 * How a worker settles: until it is answered, sometimes more than once, and not always on the node where it
 * pulled.
 */
export class Settling {
  readonly #scene: Scene
  readonly #name: string
  readonly #chance: Chance

  constructor(scene: Scene, name: string, chance: Chance) {
    this.#scene = scene
    this.#name = name
    this.#chance = chance
  }

  async settle(leases: readonly SeenLease[], outcome: Outcome, from: FleetNode): Promise<void> {
    await this.#send(leases, outcome, from, undefined)
  }

  async settleAndPull(leases: readonly SeenLease[], from: FleetNode, terms: PullTerms): Promise<SeenLease[]> {
    return this.#send(leases, 'done', from, terms)
  }

  async #send(
    leases: readonly SeenLease[],
    outcome: Outcome,
    from: FleetNode,
    terms: PullTerms | undefined,
  ): Promise<SeenLease[]> {
    if (leases.length === 0) return []
    const { client, history } = this.#scene
    const chance = this.#chance
    const request = {
      path: '/settle',
      headers: { 'x-instance-id': this.#name, ...terms?.headers },
      body: leases.map((lease) => this.#settlement(lease, outcome)),
    }
    const ask = async (node: FleetNode) => {
      const answer = await client.sendUntilAccepted(requestKinds.settle, request, chance, node)
      history.settled(leases, outcome, answer.body, answer)
      if (terms === undefined) return []
      return history.pulled(answer.body.partitions ?? [], answer, terms.asked).fresh
    }
    history.settling(leases, outcome)
    const nodes = [chance.happens(0.5) ? from : client.anyNode(chance)]
    if (chance.happens(TWIN)) nodes.push(client.anyNode(chance))
    const fresh = await Promise.all(nodes.map(ask))
    const hasKey = terms !== undefined && terms.asked.key !== null
    if (chance.happens(hasKey ? AGAIN.withKey : AGAIN.without)) fresh.push(await ask(client.anyNode(chance)))
    return fresh.flat()
  }

  #settlement({ id, partition }: SeenLease, outcome: Outcome): object {
    const chance = this.#chance
    if (outcome === 'failed')
      return {
        ...{ leaseId: id, outcome, reason: 'as chance has it', checkpoint: id },
        ...(chance.happens(0.3) ? { retryAfterSeconds: 0 } : {}),
        ...(chance.happens(0.1) ? { final: true } : {}),
      }
    if (outcome === 'released') return { leaseId: id, outcome, checkpoint: id }
    const isReported = outcome === 'done' && chance.happens(0.3)
    return { leaseId: id, outcome, ...(isReported ? { records: partition.record_count } : {}) }
  }
}
