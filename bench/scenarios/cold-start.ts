import { type Bench, type Scenario, startLoad } from '../harness/bench.ts'
import { CleanUp, temporaryFolder } from '../harness/clean-up.ts'
import { processUsage } from '../harness/process-usage.ts'
import { type Service, startBaton, startNullServer } from '../harness/services.ts'
import { median } from '../harness/statistics.ts'
import { HttpConnection } from '../load/http-connection.ts'
import { pullRequest } from '../load/requests.ts'
import type { Figure, Goal } from '../report/model.ts'

interface Started {
  readonly millis: number
  readonly rssMb: number
}

/** Times from just before the process is spawned to the answer of the first pull, then ends the service. */
async function firstAnswer(start: (cleanUp: CleanUp) => Promise<Service>, outer: CleanUp): Promise<Started> {
  const cleanUp = new CleanUp()
  outer.add(() => cleanUp.run())
  const startedAt = performance.now()
  const service = await start(cleanUp)
  const connection = await HttpConnection.open(service.url)
  const { status, body } = await connection.exchange(pullRequest(service.url, 'bench-worker-0'))
  const millis = performance.now() - startedAt
  const { rssMb } = processUsage(service.pid)
  connection.close()
  await cleanUp.run()
  if (status !== 200) throw new Error(`the first pull was answered ${status}: ${body.slice(0, 500)}`)
  return { millis, rssMb }
}

/** The store grows from step to step: each begins with what those before it have stored. */
async function run(bench: Bench) {
  const { sizes, progress, cleanUp } = bench
  const { storedAtStart, lanesAtStart, leasesAtStart } = sizes
  const dataFolder = temporaryFolder('data', cleanUp)
  const load = startLoad(bench)
  const startOnStore = (scope: CleanUp) => startBaton({ dataFolder }, scope)
  const fill = async (call: (url: string) => Promise<unknown>) => {
    const service = await startOnStore(cleanUp)
    await call(service.url)
    await service.stop()
  }
  const nothing: Figure = { label: 'null server', unit: 'ms', values: [] }
  const figures = [nothing]
  let rssBefore = 0
  const measure = async (label: string, goals: { time?: Goal; memory?: Goal } = {}) => {
    const values: Started[] = []
    for (let round = 1; round <= sizes.rounds; round++) {
      const started = await firstAnswer(startOnStore, cleanUp)
      values.push(started)
      progress.say(`${label}, round ${round}/${sizes.rounds}: ${started.millis.toFixed(0)} ms`)
    }
    const [millis, rss] = [values.map((one) => one.millis), values.map(({ rssMb }) => rssMb)]
    const added = rss.map((rssMb) => rssMb - rssBefore)
    rssBefore = median(rss)
    figures.push({ label, unit: 'ms', values: millis, ...(goals.time && { goal: goals.time }) })
    const memory: Figure = { label: `${label}: memory added`, unit: 'MB', values: added }
    figures.push({ ...memory, ...(goals.memory && { goal: goals.memory }) })
  }
  for (let round = 1; round <= sizes.rounds; round++)
    nothing.values.push((await firstAnswer(startNullServer, cleanUp)).millis)
  await measure('empty store')
  await fill((url) => load.call('fill', { url, partitions: storedAtStart }))
  await measure(`and ${storedAtStart} waiting partitions`)
  await fill((url) => load.call('fillLanes', { url, lanes: lanesAtStart }))
  await measure(`and ${lanesAtStart} lanes`, { memory: { atMost: 300 } })
  await fill((url) => load.call('takeLeases', { url, leases: leasesAtStart }))
  await measure(`and ${leasesAtStart} leases`, { time: { atMost: 3_000 }, memory: { atMost: 300 } })
  return {
    rows: [],
    figures,
    notes: [
      'Spawning the process to the answer of a first pull, TypeScript stripped on the way; files in the page cache. Memory is resident memory at that answer.',
    ],
  }
}

export const coldStart: Scenario = { name: 'cold-start', title: 'Start to first answer, SQLite', run }
