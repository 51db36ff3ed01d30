import type { Bench, Scenario } from '../harness/bench.ts'
import { handOffContender } from '../harness/hand-off-contender.ts'
import { type PostgresCompared, startNodes, startPostgresCompared } from '../harness/postgres-compared.ts'
import { type Contender, interleave, rowOf } from '../harness/rounds.ts'
import { quotient } from '../report/model.ts'

const CLIENTS = [16, 64] as const
const TASKS = 20
const BACKLOG = 50_000

/** One node that always has work, because a producer calls back as many partitions as were taken. */
async function startBesideProducer(bench: Bench, compared: PostgresCompared) {
  const {
    nodes: [node],
  } = await startNodes(bench, compared, 1)
  const { load, postgres } = compared
  bench.progress.say('filling')
  const partitions = Math.min(BACKLOG, bench.sizes.backlogs.at(-1) ?? BACKLOG)
  let tasks = await load.call('deepen', { url: node.url, partitions, tasks: TASKS })
  return (clients: number, renews: boolean): Contender =>
    handOffContender({
      label: `${clients} clients${renews ? ', each lease renewed once' : ''}`,
      load,
      watched: [node.pid, postgres.pid],
      firstGuess: 0,
      async run(client, seconds) {
        const result = await client.call('steadyBacklog', { url: node.url, clients, seconds, tasks, renews })
        tasks = result.tasks
        return result
      },
    })
}

async function run(bench: Bench) {
  const contender = await startBesideProducer(bench, await startPostgresCompared(bench))
  const groups = CLIENTS.map((clients) => ({
    clients,
    plain: contender(clients, false),
    renewing: contender(clients, true),
  }))
  const rows = await interleave(
    groups.flatMap(({ plain, renewing }) => [plain, renewing]),
    bench.sizes,
    bench.progress,
  )
  return {
    rows,
    figures: groups.map(({ clients, plain, renewing }) =>
      quotient(`${clients} clients: with renewals ÷ without`, rowOf(rows, renewing), rowOf(rows, plain)),
    ),
    notes: [
      `One node, ${TASKS} tasks; a producer adds arrays of 250 as partitions are taken.`,
      'With renewals there are three requests for each partition instead of two.',
      'The server processor time is that of Baton and PostgreSQL together.',
    ],
  }
}

export const postgresBesideProducer: Scenario = {
  name: 'postgres-beside-producer',
  title: 'Pull and settle one by one while a producer calls back, PostgreSQL',
  run,
}
