import { setTimeout as sleep } from 'node:timers/promises'
import type { Chance } from './chance.ts'
import type { Pause, ProducedTask } from './produced-task.ts'
import { requestKinds } from './request-kinds.ts'
import type { Scene } from './scene.ts'

/** Sends control requests for tasks during a storm. */
export async function operate(scene: Scene, name: string): Promise<void> {
  const operator = new Operator(scene, name)
  while (scene.isStormy) await operator.turn()
}

class Operator {
  readonly #scene: Scene
  readonly #chance: Chance

  constructor(scene: Scene, name: string) {
    this.#scene = scene
    this.#chance = scene.chance.for(name)
  }

  async turn(): Promise<void> {
    await sleep(this.#chance.between(50, 250))
    if (!this.#chance.happens(this.#scene.size.contrary)) return
    const open = [...this.#scene.history.tasks.values()].filter(
      ({ accepted, cancelSentAt, isInHand }) => accepted.size > 0 && cancelSentAt === undefined && !isInHand,
    )
    // Older tasks are finished; control requests for them would test little.
    if (open.length < 2) return
    const task = this.#chance.pick(open.slice(-4))
    task.isInHand = true
    const draw = this.#chance.below(100)
    if (draw < 50) await this.#pause(task)
    else if (draw < 65) await this.#cancel(task)
    else await this.#order(task, 'retry', {})
    task.isInHand = false
  }

  async #pause(task: ProducedTask): Promise<void> {
    const never = Number.POSITIVE_INFINITY
    const pause: Pause = { sentAt: Date.now(), from: never, until: never, resumedAt: never }
    task.pauses.push(pause)
    const paused = await this.#order(task, 'pause')
    if (paused.problem !== undefined) {
      pause.resumedAt = paused.receivedAt
      return
    }
    await sleep(this.#chance.between(50, 500))
    pause.until = Date.now()
    pause.from = paused.receivedAt
    const resumed = await this.#order(task, 'resume')
    pause.resumedAt = resumed.receivedAt
    if (resumed.problem !== undefined)
      this.#scene.findings.add(`resuming ${task.taskId} was answered ${resumed.problem}`)
  }

  async #cancel(task: ProducedTask): Promise<void> {
    task.cancelSentAt = Date.now()
    const cancelled = await this.#order(task, 'cancel')
    if (cancelled.problem === undefined) task.cancelledAt = cancelled.receivedAt
    else task.cancelSentAt = undefined
  }

  async #order(task: ProducedTask, verb: string, body?: object) {
    const request = { path: `/tasks/${task.taskId}/${verb}`, ...(body === undefined ? {} : { body }) }
    const answer = await this.#scene.client.sendUntilAnswered(requestKinds.control, request, this.#chance)
    const isExpected =
      answer.problem === undefined || (answer.problem === 'task_finished' && verb !== 'retry')
    if (!isExpected) this.#scene.findings.add(`${verb} of ${task.taskId} was answered ${answer.problem}`)
    return answer
  }
}
