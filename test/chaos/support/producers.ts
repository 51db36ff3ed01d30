import { setTimeout as sleep } from 'node:timers/promises'
import type { PartitionDescriptor } from '@baton/protocol'
import type { Chance } from './chance.ts'
import { ProducedTask } from './produced-task.ts'
import { questions } from './questions.ts'
import type { Scene } from './scene.ts'

/** Calls back one task after the other, each array until it is answered. */
export async function produce(scene: Scene, name: string): Promise<void> {
  const producer = new Producer(scene, name)
  const { history, size } = scene
  for (let number = 0; scene.isStormy; number += 1) {
    await producer.callBackTask(`${name}-${number}`)
    if (history.waiting <= size.backlog) continue
    while (scene.isStormy && history.waiting > size.ebb) await sleep(20)
  }
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
    const task = new ProducedTask(taskId, chance.happens(0.4 * this.#scene.size.contrary))
    this.#scene.history.tasks.set(taskId, task)
    const levels = chance.between(task.hasBarrier ? 2 : 1, 4)
    const largest = Math.max(40, this.#scene.size.backlog / 4)
    for (let level = 0; level < levels; level += 1) {
      const arrays = this.#arrays(task, level, chance.between(20, largest))
      // Levels of a task with a barrier come one after the other: only then is it known when one was complete.
      if (!task.hasBarrier && chance.happens(0.5))
        await Promise.all(arrays.map((array) => this.#callBack(task, array)))
      else for (const array of arrays) await this.#callBack(task, array)
      if (task.hasBarrier && level === 0) await this.#setBarrier(task)
      if (task.cancelledAt !== undefined) return
    }
  }

  /** Arrays of all sizes, some of which repeat the end of the one before. */
  #arrays(task: ProducedTask, level: number, size: number): PartitionDescriptor[][] {
    const chance = this.#chance
    const all = Array.from({ length: size }, (_, index) => ({
      taskId: task.taskId,
      computeTableName: `results.table_${level}`,
      partition_name: `${task.taskId}-${level}-${index}`,
      record_count: chance.happens(0.1) ? 0 : chance.between(1, 900),
      priorityLevel: level,
    }))
    const arrays: PartitionDescriptor[][] = []
    for (let start = 0; start < size; ) {
      const end = start + (chance.happens(0.1) ? 1500 : chance.between(10, 250))
      const repeated = chance.happens(0.4) ? chance.below(40) : 0
      arrays.push(all.slice(Math.max(0, start - repeated), end))
      start = end
    }
    return arrays
  }

  async #callBack(task: ProducedTask, array: readonly PartitionDescriptor[]): Promise<void> {
    const { asking, findings } = this.#scene
    for (const partition of array) task.partitions.set(partition.partition_name, partition)
    const request = { path: '/call-back', headers: { 'x-instance-id': this.#name }, body: array }
    const times = this.#chance.happens(0.15) ? 2 : 1
    const answers = await Promise.all(
      Array.from({ length: times }, () => asking.insist(questions.callBack, request, this.#chance)),
    )
    for (const { body, problem, wasRepeated } of answers) {
      task.saidToBeNew += body?.accepted ?? 0
      if (wasRepeated === true) task.lacksAnswers = true
      if (body !== undefined) {
        if (body.accepted + body.duplicates !== array.length)
          findings.add(`an array of ${array.length} was answered ${JSON.stringify(body)}`)
        for (const { partition_name } of array) task.accepted.add(partition_name)
      } else if (task.cancelSentAt === undefined)
        findings.add(`a call-back of ${task.taskId}, which nobody cancelled, was answered ${problem}`)
    }
  }

  async #setBarrier(task: ProducedTask): Promise<void> {
    const request = { path: `/tasks/${task.taskId}/level-barrier`, body: { enabled: true } }
    const { problem } = await this.#scene.asking.insist(questions.control, request, this.#chance)
    if (problem !== undefined && task.cancelSentAt === undefined)
      this.#scene.findings.add(`the barrier of ${task.taskId} was answered ${problem}`)
  }
}
