import { type Bench, type Scenario, startLoad } from '../harness/bench.ts'
import { CleanUp, temporaryFolder } from '../harness/clean-up.ts'
import { type Service, startBaton, startNullServer } from '../harness/services.ts'
import { HttpConnection } from '../load/http-connection.ts'
import { pullRequest } from '../load/requests.ts'
import type { Figure } from '../report/model.ts'

/** Times from just before the process is spawned to the answer of the first pull, then ends the service. */
async function firstAnswer(start: (cleanUp: CleanUp) => Promise<Service>, outer: CleanUp): Promise<number> {
  const cleanUp = new CleanUp()
  outer.add(() => cleanUp.run())
  const startedAt = performance.now()
  const service = await start(cleanUp)
  const connection = await HttpConnection.open(service.url)
  const { status, body } = await connection.exchange(pullRequest(service.url, 'bench-worker-0'))
  const took = performance.now() - startedAt
  connection.close()
  await cleanUp.run()
  if (status !== 200) throw new Error(`the first pull was answered ${status}: ${body.slice(0, 500)}`)
  return took
}

async function run(bench: Bench) {
  const { sizes, progress, cleanUp } = bench
  const stored = temporaryFolder('data', cleanUp)
  const load = startLoad(bench)
  const filling = await startBaton({ dataFolder: stored }, cleanUp)
  await load.call('fill', { url: filling.url, partitions: sizes.storedAtStart })
  await filling.stop()
  progress.say(`a store of ${sizes.storedAtStart} partitions is there`)
  const figure = (label: string): Figure => ({ label, unit: 'ms', values: [] })
  const empty = figure('Baton on an empty store')
  const full = figure(`Baton on a store of ${sizes.storedAtStart}`)
  const limit = figure('null server')
  for (let round = 1; round <= sizes.rounds; round++) {
    const dataFolder = temporaryFolder('data', cleanUp)
    empty.values.push(await firstAnswer((scope) => startBaton({ dataFolder }, scope), cleanUp))
    full.values.push(await firstAnswer((scope) => startBaton({ dataFolder: stored }, scope), cleanUp))
    limit.values.push(await firstAnswer(startNullServer, cleanUp))
    const last = (of: Figure) => of.values.at(-1)?.toFixed(0)
    progress.say(
      `round ${round}/${sizes.rounds}: empty ${last(empty)} ms, stored ${last(full)} ms, null server ${last(limit)} ms`,
    )
  }
  return {
    rows: [],
    figures: [empty, full, limit],
    notes: [
      'Spawning the process to the answer of a first pull, TypeScript stripped on the way; files in the page cache.',
    ],
  }
}

export const coldStart: Scenario = { name: 'cold-start', title: 'Start to first answer, SQLite', run }
