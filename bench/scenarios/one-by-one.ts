import type { Bench, Scenario } from '../harness/bench.ts'
import { type Compared, startCompared } from '../harness/compared-servers.ts'
import { handOffContender } from '../harness/hand-off-contender.ts'
import { type Contender, interleave, rowOf } from '../harness/rounds.ts'
import { quotient } from '../report/model.ts'

function baton({ load, baton, backlog }: Compared, clients: number, withKeys = false): Contender {
  return handOffContender({
    label: `Baton, ${clients} clients${withKeys ? ', each pull with an Idempotency-Key' : ''}`,
    load,
    watched: [baton.pid],
    backlog,
    firstGuess: 15_000,
    run: (client, seconds) =>
      client.call('pullThenSettle', { urls: [baton.url], clients, seconds, batch: 1, withKeys }),
  })
}

function nullServer({ load, nullServer }: Compared, clients: number): Contender {
  return handOffContender({
    label: `null server, ${clients} clients`,
    load,
    watched: [nullServer.pid],
    firstGuess: 0,
    run: (client, seconds) =>
      client.call('pullThenSettle', { urls: [nullServer.url], clients, seconds, batch: 1 }),
  })
}

async function run(bench: Bench) {
  const compared = await startCompared(bench)
  const of16 = { baton: baton(compared, 16), limit: nullServer(compared, 16) }
  const of64 = { baton: baton(compared, 64), limit: nullServer(compared, 64) }
  const keyed = baton(compared, 16, true)
  const rows = await interleave(
    [of16.baton, of16.limit, of64.baton, of64.limit, keyed],
    bench.sizes,
    bench.progress,
  )
  const row = (contender: Contender) => rowOf(rows, contender)
  return {
    rows,
    figures: [
      quotient('16 clients: Baton ÷ null server', row(of16.baton), row(of16.limit), { atLeast: 0.65 }),
      quotient('64 clients: Baton ÷ null server', row(of64.baton), row(of64.limit), { atLeast: 0.75 }),
      quotient('16 clients: with keys ÷ without', row(keyed), row(of16.baton)),
    ],
    notes: ['A pair is two requests: GET /pull, POST /settle.'],
  }
}

export const oneByOne: Scenario = {
  name: 'one-by-one',
  title: 'Pull and settle one by one, SQLite',
  run,
}
