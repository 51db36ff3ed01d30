import type { Bench, Scenario } from '../harness/bench.ts'
import { startCompared } from '../harness/compared-servers.ts'
import { handOffContender } from '../harness/hand-off-contender.ts'
import { interleave, rowOf } from '../harness/rounds.ts'
import { quotient } from '../report/model.ts'

const CLIENTS = 16

async function run(bench: Bench) {
  const { load, baton, backlog, nullServer } = await startCompared(bench)
  const twoRequests = handOffContender({
    label: 'Baton, pull then settle',
    load,
    watched: [baton.pid],
    backlog,
    firstGuess: 15_000,
    run: (client, seconds) =>
      client.call('pullThenSettle', { urls: [baton.url], clients: CLIENTS, seconds, batch: 1 }),
  })
  const oneRequest = handOffContender({
    label: 'Baton, settle and pull in one request',
    load,
    watched: [baton.pid],
    backlog,
    firstGuess: 25_000,
    run: (client, seconds) =>
      client.call('settleAndPull', { urls: [baton.url], clients: CLIENTS, seconds, batch: 1 }),
  })
  const limit = handOffContender({
    label: 'null server, one request',
    load,
    watched: [nullServer.pid],
    firstGuess: 0,
    run: (client, seconds) =>
      client.call('settleAndPull', { urls: [nullServer.url], clients: CLIENTS, seconds, batch: 1 }),
  })
  const rows = await interleave([oneRequest, twoRequests, limit], bench.sizes, bench.progress)
  const [one, two, ceiling] = [oneRequest, twoRequests, limit].map((contender) => rowOf(rows, contender))
  if (!one || !two || !ceiling) throw new Error('a contender has no row')
  return {
    rows,
    figures: [
      quotient('one request ÷ two requests', one, two, { atLeast: 1.6 }),
      quotient('Baton ÷ null server', one, ceiling),
    ],
    notes: [`${CLIENTS} clients. For beanstalkd, see peers/results.md.`],
  }
}

export const settleAndPull: Scenario = {
  name: 'settle-and-pull',
  title: 'Settle and pull in one request, SQLite',
  run,
}
