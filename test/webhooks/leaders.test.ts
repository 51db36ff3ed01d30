import { expect, test } from 'vitest'
import { Receiver } from '../../packages/server/test/webhooks/support/receiver.ts'
import { NodeProcess } from '../postgres/support/node-process.ts'
import { PostgresServer } from '../postgres/support/postgres-server.ts'
import { until } from '../support/until.ts'
import { finishTasks, subscribe } from './support/tasks.ts'

const FLAGS = [
  ...['--webhook-networks', '127.0.0.0/8', '--webhook-backoff-seconds', '0.01'],
  ...['--lease-seconds', '2', '--backoff-seconds', '0.05', '--max-attempts', '1000', '--log-level', 'warn'],
]

test('one leader after the other is killed: the next one goes on, and every event arrives in order', async () => {
  const server = await PostgresServer.start()
  const { url } = await server.createDatabase()
  const start = (name: string) => NodeProcess.start(name, ['--database-url', url, ...FLAGS])
  const nodes = await Promise.all(['north', 'east'].map(start))
  try {
    const receiver = await Receiver.start()
    const [first] = nodes as [NodeProcess, NodeProcess]
    const { secret } = await subscribe(first.url, receiver.url)
    const tasks: string[] = []
    for (let round = 0; round < 4; round += 1) {
      const [leaving, staying] = (round % 2 === 0 ? nodes : nodes.toReversed()) as [NodeProcess, NodeProcess]
      const names = Array.from({ length: 4 }, (_, at) => `t${round}-${at}`)
      tasks.push(...names)
      // Asked of the one that follows or of the one that leads: both know all of it.
      await finishTasks(round % 3 === 0 ? leaving.url : staying.url, names)
      await leaving.kill()
      await until(async () => (await fetch(`${staying.url}/readyz`)).ok)
      await leaving.startUntilItRuns()
    }
    await until(() => receiver.firstTaken.length >= 3 * tasks.length)
    expect(receiver.firstTaken).toHaveLength(3 * tasks.length)
    expect(Object.keys(receiver.sequences).toSorted()).toEqual(tasks.toSorted())
    receiver.expectInOrder()
    receiver.expectSigned(secret)
  } finally {
    await Promise.all(nodes.map((node) => node.kill()))
    await server.dispose()
  }
}, 300_000)
