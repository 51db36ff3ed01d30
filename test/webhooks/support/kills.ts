import { expect } from 'vitest'
import { type Behaviour, Receiver } from '../../../packages/server/test/webhooks/support/receiver.ts'
import { until } from '../../support/until.ts'
import { finishTasks, subscribe } from './tasks.ts'

/** How often the service is killed. For a longer run: `WEBHOOK_KILLS=50 npm test -- test/webhooks`. */
export const KILLS = Number(process.env['WEBHOOK_KILLS'] ?? 3)
const TASKS_PER_KILL = 4
/** The events of a task of two levels. */
const EVENTS_PER_TASK = 3

export const WEBHOOK_FLAGS = ['--webhook-networks', '127.0.0.0/8', '--webhook-backoff-seconds', '0.01']

/** A service that delivers events and can be killed at any time. */
export interface KillableService {
  /** Changes when another node takes over. */
  readonly url: string
  killed(): Promise<void>
}

/**
 * What the service is doing when it is killed. The first is right after the answer that confirms durability.
 */
const moments = ['has appended', 'waits for an answer', 'cannot reach the receiver'] as const

/**
 * Finishes tasks and kills the service, again and again. Every event must reach each receiver at least once,
 * signed and in order for each task, whatever receivers do and whenever the service dies.
 */
export async function expectNothingLost(service: KillableService): Promise<void> {
  const inner = await Receiver.start()
  const steady = await Receiver.start()
  const unreliable = await Receiver.start(failingInEachWay(inner.url))
  const receivers = [steady, unreliable]
  for (const receiver of receivers) receiver.verifyWith((await subscribe(service.url, receiver.url)).secret)
  const tasks: string[] = []
  for (let kill = 0; kill < KILLS; kill += 1) {
    const moment = moments[kill % moments.length] ?? 'has appended'
    const names = Array.from({ length: TASKS_PER_KILL }, (_, at) => `t${kill}-${at}`)
    tasks.push(...names)
    if (moment === 'cannot reach the receiver') await steady.down()
    const before = steady.received.length
    if (moment === 'waits for an answer') steady.behave = () => null
    // Answered, so durable: from here on it must be delivered, even if the process is killed.
    await finishTasks(service.url, names)
    if (moment === 'waits for an answer') await until(() => steady.received.length > before)
    await service.killed()
    steady.behave = () => 204
    if (moment === 'cannot reach the receiver') await steady.up()
  }
  const events = EVENTS_PER_TASK * tasks.length
  await until(() => receivers.every(({ firstTaken }) => firstTaken.length >= events))
  for (const receiver of receivers) {
    expect(receiver.firstTaken).toHaveLength(events)
    expect(Object.keys(receiver.sequences).toSorted()).toEqual(tasks.toSorted())
    receiver.expectInOrder()
    expect(receiver.unverified).toEqual([])
  }
  expect(inner.received).toEqual([])
}

/** Fails now and then in each way in which a receiver can, except for slow ones. */
function failingInEachWay(inner: string): Behaviour {
  let requests = 0
  return (_received, response, { socket }) => {
    requests += 1
    switch (requests % 11) {
      case 2:
        return 500
      case 4:
        socket.destroy()
        return null
      case 6:
        // Without the full status line, the sender cannot know the status.
        socket.write('HTTP/1.1 20')
        socket.destroy()
        return null
      case 8:
        response.writeHead(307, { location: inner }).end()
        return null
      case 10:
        setTimeout(() => response.writeHead(503).end(), 30)
        return null
      default:
        return 204
    }
  }
}
