import { test } from 'vitest'
import { NodeProcess } from '../postgres/support/node-process.ts'
import { PostgresServer } from '../postgres/support/postgres-server.ts'
import { until } from '../support/until.ts'
import { expectNothingLost, KILLS, WEBHOOK_FLAGS } from './support/kills.ts'

const FLAGS = [
  ...WEBHOOK_FLAGS,
  ...['--lease-seconds', '2', '--backoff-seconds', '0.05', '--max-attempts', '1000', '--log-level', 'warn'],
]

test(`if ${KILLS} leaders are killed one after the other, the next one continues, and every event arrives in order`, async () => {
  const server = await PostgresServer.start()
  const { url } = await server.createDatabase()
  const start = (name: string) => NodeProcess.start(name, ['--database-url', url, ...FLAGS])
  // The two nodes lead in turns, the first one first.
  let [leading, following] = [await start('north'), await start('east')]
  let asked = 0
  try {
    await expectNothingLost({
      // A follower knows as much as the leader.
      get url() {
        asked += 1
        return asked % 2 === 0 ? following.url : leading.url
      },
      killed: async () => {
        await leading.kill()
        await until(async () => (await fetch(`${following.url}/readyz`)).ok)
        await leading.startUntilItRuns()
        ;[leading, following] = [following, leading]
      },
    })
  } finally {
    await Promise.all([leading, following].map((node) => node.kill()))
    await server.dispose()
  }
}, 3_600_000)
