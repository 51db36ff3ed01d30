import { setTimeout as sleep } from 'node:timers/promises'
import type { PartitionDescriptor } from '@baton/protocol'
import type { Chance } from './chance.ts'
import { LIMITED_LEVEL, LIMITED_TABLE } from './limit-checks.ts'
import { type CalledBack, ProducedTask } from './produced-task.ts'
import { requestKinds } from './request-kinds.ts'
import type { Scene } from './scene.ts'

/** Weights in percent, and lengths of arrays with inclusive bounds. */
const LENGTHS = [
  { below: 20, least: 1, most: 3 },
  { below: 80, least: 10, most: 250 },
  { below: 100, least: 500, most: 4000 },
]

/** Calls back one task after the other and sends each array until it is answered. */
export async function produce(scene: Scene, name: string): Promise<void> {
  const producer = new Producer(scene, name)
  const { history, size } = scene
  for (let number = 0; scene.isStormy; number += 1) {
    await producer.callBackTask(`${name}-${number}`)
    if (history.waiting <= size.backlog) continue
    while (scene.isStormy && history.waiting > size.ebb) await sleep(20)
  }
}

/** Sends everything again, for a store that may have lost a part of it. The rest are duplicates. */
export async function callBackAgain(scene: Scene): Promise<void> {
  const producer = new Producer(scene, 'again')
  for (const task of scene.history.tasks.values())
    for (const array of task.arrays) await producer.send(task, array)
}

class Producer {
  readonly #scene: Scene
  readonly #name: string
  readonly #chance: Chance

  constructor(scene: Scene, name: string) {
    this.#scene = scene
    this.#name = name
    this.#chance = scene.chance.for(name)
  }

  async callBackTask(taskId: string): Promise<void> {
    const chance = this.#chance
    const { contrary, operators, backlog, maxLeases } = this.#scene.size
    const task = new ProducedTask(taskId, operators > 0 && chance.happens(0.3 * contrary))
    this.#scene.history.tasks.set(taskId, task)
    const levels = Array.from({ length: chance.between(task.hasBarrier ? 2 : 1, 4) }, (_, level) => level)
    if (maxLeases !== null && chance.happens(0.3)) levels.push(LIMITED_LEVEL)
    const largest = Math.max(40, backlog / 4)
    // Levels of a task with a barrier are called back one after the other: only then is it known when one was
    // complete. Levels of other tasks come in any order, so that lower ones arrive while higher ones wait.
    const groups = task.hasBarrier
      ? levels.map((level) => [level])
      : chance.happens(0.3)
        ? [levels]
        : chance.shuffled(levels).map((level) => [level])
    for (const [position, group] of groups.entries()) {
      const arrays = this.#arrays(
        group.flatMap((level) =>
          this.#lane(taskId, level, chance.between(20, level === LIMITED_LEVEL ? 40 : largest)),
        ),
      )
      if (!task.hasBarrier && chance.happens(0.5))
        await Promise.all(arrays.map((array) => this.#callBack(task, array)))
      else for (const array of arrays) await this.#callBack(task, array)
      if (task.hasBarrier && position === 0) await this.#setBarrier(task)
      if (task.cancelledAt !== undefined) return
    }
  }

  /** Sends it until it is answered, at times twice at the same time. */
  async send(task: ProducedTask, array: CalledBack): Promise<void> {
    const { client, findings } = this.#scene
    const { length } = array.descriptors
    const request = { path: '/call-back', headers: { 'x-instance-id': this.#name }, body: array.descriptors }
    const times = this.#chance.happens(0.15) ? 2 : 1
    const answers = await Promise.all(
      Array.from({ length: times }, () =>
        client.sendUntilAnswered(requestKinds.callBack, request, this.#chance),
      ),
    )
    for (const answer of answers) {
      const { body, problem } = answer
      task.saidToBeNew += body?.accepted ?? 0
      if (answer.wasRepeated === true) task.lacksAnswers = true
      if (body !== undefined) {
        if (body.accepted + body.duplicates !== length)
          findings.add(`an array of ${length} was answered ${JSON.stringify(body)}`)
        task.answered(array, answer)
      } else if (task.cancelSentAt === undefined)
        findings.add(`a call-back of ${task.taskId}, which was not cancelled, was answered ${problem}`)
    }
  }

  #callBack(task: ProducedTask, descriptors: readonly PartitionDescriptor[]): Promise<void> {
    return this.send(task, task.sending(descriptors))
  }

  #lane(taskId: string, level: number, size: number): PartitionDescriptor[] {
    const chance = this.#chance
    return Array.from({ length: size }, (_, index) => ({
      taskId,
      computeTableName: level === LIMITED_LEVEL ? LIMITED_TABLE : `results.table_${level}`,
      partition_name: `${taskId}-${level}-${index}`,
      record_count: chance.happens(0.1) ? 0 : chance.between(1, 900),
      priorityLevel: level,
    }))
  }

  /** Arrays of all sizes, some of which repeat the end of the previous one. */
  #arrays(all: readonly PartitionDescriptor[]): PartitionDescriptor[][] {
    const chance = this.#chance
    const arrays: PartitionDescriptor[][] = []
    for (let start = 0; start < all.length; ) {
      const draw = chance.below(100)
      const { least, most } = LENGTHS.find(({ below }) => draw < below) ?? { least: 1, most: 1 }
      const end = start + chance.between(least, most)
      const repeated = chance.happens(0.3) ? chance.below(40) : 0
      arrays.push(all.slice(Math.max(0, start - repeated), end))
      start = end
    }
    return arrays
  }

  async #setBarrier(task: ProducedTask): Promise<void> {
    const request = { path: `/tasks/${task.taskId}/level-barrier`, body: { enabled: true } }
    const { problem } = await this.#scene.client.sendUntilAnswered(
      requestKinds.control,
      request,
      this.#chance,
    )
    if (problem !== undefined && task.cancelSentAt === undefined)
      this.#scene.findings.add(`the barrier of ${task.taskId} was answered ${problem}`)
  }
}
