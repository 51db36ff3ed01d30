import { setTimeout as sleep } from 'node:timers/promises'
import type { Chance } from './chance.ts'
import type { FleetNode } from './fleet.ts'
import type { SeenLease } from './history.ts'
import { Pulling } from './pulling.ts'
import { requestKinds } from './request-kinds.ts'
import type { Scene } from './scene.ts'
import { Settling } from './settling.ts'

/** What a worker does with its leases besides settling them as done, in percent. */
const FATES = [
  { fate: 'failed', below: 6 },
  { fate: 'released', below: 14 },
  { fate: 'forgotten', below: 20 },
  { fate: 'late', below: 26 },
  { fate: 'done', below: 100 },
] as const

/** Pulls and settles until nothing is left to do. */
export async function work(scene: Scene, name: string): Promise<void> {
  const worker = new Worker(scene, name)
  while (!scene.isOver) await worker.turn()
  await worker.settledLate()
}

class Worker {
  readonly #scene: Scene
  readonly #name: string
  readonly #chance: Chance
  readonly #pulling: Pulling
  readonly #settling: Settling
  #node: FleetNode
  #held: SeenLease[] = []
  #late: Promise<void>[] = []

  constructor(scene: Scene, name: string) {
    this.#scene = scene
    this.#name = name
    this.#chance = scene.chance.for(name)
    this.#pulling = new Pulling(scene, name, this.#chance)
    this.#settling = new Settling(scene, name, this.#chance)
    this.#node = scene.client.anyNode(this.#chance)
  }

  async turn(): Promise<void> {
    if (this.#held.length === 0) this.#held = await this.#pulling.pull(this.#node)
    this.#held.push(...(await this.#pulling.pullLater()))
    const held = this.#held
    this.#held = []
    if (held.length === 0) await sleep(this.#chance.between(5, 40))
    else await this.#handle(held)
    if (this.#node.isAway || this.#chance.happens(0.05)) this.#node = this.#scene.client.anyNode(this.#chance)
  }

  async settledLate(): Promise<void> {
    await Promise.all(this.#late)
  }

  async #handle(held: readonly SeenLease[]): Promise<void> {
    if (!this.#scene.isStormy) {
      await this.#settling.settle(held, 'done', this.#node)
      return
    }
    const chance = this.#chance
    const { contrary } = this.#scene.size
    await sleep(chance.between(0, 80))
    if (chance.happens(0.1 * contrary)) await this.#renew(held.slice(0, chance.between(1, held.length)))
    if (chance.happens(0.03 * contrary)) {
      await sleep(this.#leaseTimes(0.8, 1.4))
      await this.#renew(held)
    }
    let done = [...held]
    if (chance.happens(0.5 * contrary)) done = await this.#handleContrarily(held)
    const cut = chance.happens(0.3) ? chance.below(done.length + 1) : 0
    await this.#settling.settle(done.slice(0, cut), 'done', this.#node)
    const rest = done.slice(cut)
    if (chance.happens(0.45))
      this.#held = await this.#settling.settleAndPull(rest, this.#node, this.#pulling.terms())
    else await this.#settling.settle(rest, 'done', this.#node)
  }

  /** Some leases fail, some are released, some are forgotten, some take too long. Returns the rest. */
  async #handleContrarily(held: readonly SeenLease[]): Promise<SeenLease[]> {
    const fates = Map.groupBy(held, () => {
      const draw = this.#chance.below(100)
      return FATES.find(({ below }) => draw < below)?.fate
    })
    await this.#settling.settle(fates.get('failed') ?? [], 'failed', this.#node)
    await this.#settling.settle(fates.get('released') ?? [], 'released', this.#node)
    this.#settleLate(fates.get('late') ?? [], this.#node)
    return fates.get('done') ?? []
  }

  #settleLate(leases: readonly SeenLease[], node: FleetNode): void {
    if (leases.length === 0) return
    const settled = sleep(this.#leaseTimes(0.8, 1.8)).then(() => this.#settling.settle(leases, 'done', node))
    // Errors are rethrown when everything is over.
    settled.catch(() => {})
    this.#late.push(settled)
  }

  async #renew(held: readonly SeenLease[]): Promise<void> {
    const { client, history } = this.#scene
    const request = {
      path: '/renew',
      headers: { 'x-instance-id': this.#name },
      body: held.map(({ id }) => id),
    }
    const answer = await client.sendUntilAccepted(requestKinds.renew, request, this.#chance)
    history.renewed(answer.body, answer)
  }

  #leaseTimes(least: number, most: number): number {
    return this.#scene.history.leaseMillis * (this.#chance.between(least * 100, most * 100) / 100)
  }
}
