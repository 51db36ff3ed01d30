import { setTimeout as sleep } from 'node:timers/promises'
import type { PullAnswer } from '@baton/protocol'
import type { NodeProcess } from '../../postgres/support/node-process.ts'
import type { Answer } from './asking.ts'
import type { Chance } from './chance.ts'
import type { SeenLease } from './history.ts'
import { type PullTerms, pullTerms } from './pull-terms.ts'
import { questions } from './questions.ts'
import type { Scene } from './scene.ts'
import { Settling } from './settling.ts'

/** What a contrary worker does with its leases, in hundredths. */
const FATES = [
  { fate: 'failed', below: 6 },
  { fate: 'released', below: 12 },
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
  readonly #settling: Settling
  #node: NodeProcess
  #held: SeenLease[] = []
  #late: Promise<void>[] = []

  constructor(scene: Scene, name: string) {
    this.#scene = scene
    this.#name = name
    this.#chance = scene.chance.for(name)
    this.#settling = new Settling(scene, name, this.#chance)
    this.#node = scene.asking.anyNode(this.#chance)
  }

  async turn(): Promise<void> {
    if (this.#held.length === 0) this.#held = await this.#pull()
    const held = this.#held
    this.#held = []
    if (held.length === 0) await sleep(this.#chance.between(5, 40))
    else await this.#handle(held)
    if (this.#chance.happens(0.05)) this.#node = this.#scene.asking.anyNode(this.#chance)
  }

  async settledLate(): Promise<void> {
    await Promise.all(this.#late)
  }

  async #pull(): Promise<SeenLease[]> {
    const { asking, isStormy, size } = this.#scene
    const chance = this.#chance
    const terms = pullTerms(chance, this.#scene)
    const headers = { 'x-instance-id': this.#name, ...terms.headers }
    const hangUpAfter = isStormy && chance.happens(0.04 * size.contrary) ? chance.below(15) : undefined
    const hasTwin = terms.key !== null && chance.happens(0.08 * size.contrary)
    const [first, twin] = await Promise.all([
      asking.ask(this.#node, questions.pull, { path: '/pull', headers, hangUpAfter }),
      hasTwin
        ? asking.ask(asking.anyNode(chance), questions.pull, { path: '/pull', headers })
        : Promise.resolve(undefined),
    ])
    const repeat = await this.#repeated(headers, terms.key, first !== undefined)
    return this.#noted([first, twin, repeat], terms)
  }

  /** Because no answer came, or out of forgetfulness: then a node may have died in between, and leases have ended. */
  async #repeated(headers: Readonly<Record<string, string>>, key: string | null, wasAnswered: boolean) {
    const { isStormy, size } = this.#scene
    const isForgetful = wasAnswered && isStormy && this.#chance.happens(0.06 * size.contrary)
    if (key === null || (wasAnswered && !isForgetful)) return undefined
    if (isForgetful) await sleep(this.#leaseTimes(0, 2))
    return this.#scene.asking.insist(questions.pull, { path: '/pull', headers }, this.#chance)
  }

  /** What came by any of the answers to one pull. */
  #noted(answers: readonly (Answer<PullAnswer> | undefined)[], { batch, key }: PullTerms): SeenLease[] {
    const leases = answers.flatMap((answer) =>
      answer?.body === undefined
        ? []
        : this.#scene.history.pulled(answer.body.partitions, answer, batch, key),
    )
    return [...new Set(leases)]
  }

  async #handle(held: readonly SeenLease[]): Promise<void> {
    if (!this.#scene.isStormy) {
      await this.#settling.settle(held, 'done', this.#node)
      return
    }
    const chance = this.#chance
    const { contrary } = this.#scene.size
    await sleep(chance.between(0, 30))
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
      this.#held = await this.#settling.settleAndPull(rest, this.#node, pullTerms(chance, this.#scene))
    else await this.#settling.settle(rest, 'done', this.#node)
  }

  /** Some fail, some are given back, some are forgotten, some take too long. The rest is returned. */
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

  #settleLate(leases: readonly SeenLease[], node: NodeProcess): void {
    if (leases.length === 0) return
    const settled = sleep(this.#leaseTimes(0.8, 1.8)).then(() => this.#settling.settle(leases, 'done', node))
    // Whether it failed is asked when everything is over.
    settled.catch(() => {})
    this.#late.push(settled)
  }

  async #renew(held: readonly SeenLease[]): Promise<void> {
    const { asking, history } = this.#scene
    const request = {
      path: '/renew',
      headers: { 'x-instance-id': this.#name },
      body: held.map(({ id }) => id),
    }
    const answer = await asking.demand(questions.renew, request, this.#chance)
    history.renewed(answer.body, answer)
  }

  #leaseTimes(least: number, most: number): number {
    return this.#scene.history.leaseMillis * (this.#chance.between(least * 100, most * 100) / 100)
  }
}
