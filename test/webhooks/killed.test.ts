import { expect, test } from 'vitest'
import { type Behaviour, Receiver } from '../../packages/server/test/webhooks/support/receiver.ts'
import { RestartableService } from '../support/restartable-service.ts'
import { until } from '../support/until.ts'
import { finishTasks, subscribe } from './support/tasks.ts'

const FLAGS = [
  '--webhook-networks',
  '127.0.0.0/8',
  '--webhook-backoff-seconds',
  '0.01',
  '--log-level',
  'warn',
]

/** Fails now and then, in each of the ways in which a receiver can. */
const unreliable = (): Behaviour => {
  let requests = 0
  return (_received, _response, { socket }) => {
    requests += 1
    if (requests % 7 === 3) return 500
    if (requests % 7 === 5) {
      socket.destroy()
      return null
    }
    return 204
  }
}

test('the service is killed again and again: every event arrives, in order for each task', async () => {
  const service = await RestartableService.start(...FLAGS)
  const receiver = await Receiver.start(unreliable())
  const { secret } = await subscribe(service.url, receiver.url)
  const tasks: string[] = []
  for (let round = 0; round < 5; round += 1) {
    const names = Array.from({ length: 5 }, (_, at) => `t${round}-${at}`)
    // Answered, so durable: from here on it has to be told of, whatever becomes of the process.
    await finishTasks(service.url, names)
    tasks.push(...names)
    if (round % 3 === 1) await until(() => receiver.received.length > 3 * round)
    await service.kill()
    await service.startAgain()
  }
  await until(() => receiver.firstTaken.length >= 3 * tasks.length)
  expect(receiver.firstTaken).toHaveLength(3 * tasks.length)
  expect(Object.keys(receiver.sequences).toSorted()).toEqual(tasks.toSorted())
  receiver.expectInOrder()
  receiver.expectSigned(secret)
}, 300_000)
