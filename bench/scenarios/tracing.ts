import { fileURLToPath } from 'node:url'
import { type Bench, type Scenario, startLoad } from '../harness/bench.ts'
import { temporaryFolder } from '../harness/clean-up.ts'
import { backlogOf } from '../harness/compared-servers.ts'
import { handOffContender } from '../harness/hand-off-contender.ts'
import { type Contender, interleave, rowOf } from '../harness/rounds.ts'
import { startBaton } from '../harness/services.ts'
import { quotient } from '../report/model.ts'

const CLIENTS = 16
const limit = (file: string): string => fileURLToPath(new URL(`../limits/${file}`, import.meta.url))

async function run(bench: Bench) {
  const load = startLoad(bench)
  const contender = async (label: string, imports: readonly string[]): Promise<Contender> => {
    const dataFolder = temporaryFolder('data', bench.cleanUp)
    const { url, pid } = await startBaton({ dataFolder, imports }, bench.cleanUp)
    return handOffContender({
      label,
      load,
      watched: [pid],
      backlog: backlogOf(load, url),
      firstGuess: 15_000,
      run: (client, seconds) =>
        client.call('settleAndPull', { urls: [url], clients: CLIENTS, seconds, batch: 1 }),
    })
  }
  const unable = await contender('Baton, the API is not installed', [limit('no-tracing-api.ts')])
  const without = await contender('Baton, no SDK', [])
  const recording = await contender('Baton, an SDK that records every span', [limit('recording-sdk.ts')])
  const rows = await interleave([unable, without, recording], bench.sizes, bench.progress)
  return {
    rows,
    figures: [
      quotient('no SDK ÷ the API is not installed', rowOf(rows, without), rowOf(rows, unable), {
        atLeast: 0.97,
      }),
      quotient('recording every span ÷ no SDK', rowOf(rows, recording), rowOf(rows, without)),
    ],
    notes: [
      `${CLIENTS} clients, settle and pull in one request. Partitions have no trace; requests are spans all the same.`,
    ],
  }
}

export const tracing: Scenario = {
  name: 'tracing',
  title: 'Spans of requests, SQLite',
  run,
}
