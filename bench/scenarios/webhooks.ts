import type { SubscriptionList } from '@baton/protocol'
import { type Bench, type Scenario, startLoad } from '../harness/bench.ts'
import { freePort, temporaryFolder } from '../harness/clean-up.ts'
import { handOffContender } from '../harness/hand-off-contender.ts'
import { type Contender, interleave, rowOf } from '../harness/rounds.ts'
import { type Service, startBaton } from '../harness/services.ts'
import { median, middleMean } from '../harness/statistics.ts'
import { type Measurement, quotient, type Row } from '../report/model.ts'

const CLIENTS = 16
/**
 * With tasks of this size, a service at its limit ends somewhat more than the required 100,000 tasks per
 * minute.
 */
const PER_TASK = 4
/** Partitions per request. */
const BATCH = 2
/**
 * A round consists of short slices in which the two services take turns, because an event costs less than the
 * rate of a machine varies from one second to the next. Each round has new services: two processes of the
 * same program differ as much.
 */
const SLICES = 16
/** The tasks of a slice, for each second of the usual measurement. */
const TASKS_PER_SECOND = 200
/** Processor times are counted in hundredths of a second. */
const FEWEST_TASKS = 150
/** A slice ends earlier, with its last task. */
const LONGEST_SLICE_SECONDS = 60

async function run(bench: Bench) {
  const load = startLoad(bench)
  const start = () =>
    startBaton({ dataFolder: temporaryFolder('data', bench.cleanUp) }, bench.cleanUp, {
      BATON_WEBHOOK_NETWORKS: '127.0.0.1',
    })
  const contender = (label: string, { url, pid }: Service): Contender => ({
    ...handOffContender({
      label,
      load,
      watched: [pid],
      firstGuess: 0,
      async run(client) {
        const work = { urls: [url] as const, clients: CLIENTS, batch: BATCH, seconds: LONGEST_SLICE_SECONDS }
        const result = await client.call('pullThenSettle', work)
        const settledAt = performance.now()
        await flushed(url)
        // Rows are written many at a time: without the last of them, the slices of one service would end just
        // before a write and those of the other just after it.
        const seconds = result.seconds + (performance.now() - settledAt) / 1000
        // A slice is meant to end with its backlog.
        return { ...result, seconds, ranDry: false }
      },
    }),
    async prepare(seconds) {
      const tasks = tasksOf(seconds)
      await load.call('callBackTasks', { url, clients: CLIENTS, tasks, partitionsPerTask: PER_TASK })
      await flushed(url)
    },
  })

  const withoutRow: Row = { label: 'no subscription', measurements: [] }
  const deadRow: Row = { label: 'one whose receiver is dead', measurements: [] }
  let pending = ''
  for (let round = 1; round <= bench.sizes.rounds; round += 1) {
    bench.progress.say(`round ${round}/${bench.sizes.rounds}, in slices`)
    const [quiet, telling] = [await start(), await start()]
    // A port that was free: connections to it are refused.
    await subscribe(telling.url, `http://127.0.0.1:${await freePort()}/hooks`)
    const without = contender(withoutRow.label, quiet)
    const dead = contender(deadRow.label, telling)
    const slices = await interleave([without, dead], { ...bench.sizes, rounds: SLICES }, bench.progress)
    withoutRow.measurements.push(together(rowOf(slices, without).measurements))
    deadRow.measurements.push(together(rowOf(slices, dead).measurements))
    pending = await pendingOf(telling.url)
    await Promise.all([quiet.stop(), telling.stop()])
  }
  return {
    rows: [withoutRow, deadRow],
    figures: [
      quotient('pulls with a dead receiver ÷ without a subscription', deadRow, withoutRow, { atLeast: 0.95 }),
      {
        // In a slice, both hand off the same number of partitions.
        label: 'processor time per partition, the same',
        unit: '×' as const,
        values: deadRow.measurements.map(
          ({ serverCpuSeconds = Number.NaN }, round) =>
            serverCpuSeconds / (withoutRow.measurements[round]?.serverCpuSeconds ?? Number.NaN),
        ),
        goal: { atMost: 1.05 },
      },
      {
        label: 'tasks that end in a minute',
        unit: '' as const,
        values: deadRow.measurements.map(({ rate }) => (60 * rate) / PER_TASK),
        goal: { atLeast: 100_000 },
      },
      {
        label: 'memory with a dead receiver, more than without',
        unit: 'MB' as const,
        values: deadRow.measurements.map(
          ({ serverRssMb = 0 }, round) => serverRssMb - (withoutRow.measurements[round]?.serverRssMb ?? 0),
        ),
        goal: { atMost: 64 },
      },
    ],
    notes: [
      `Before each slice, ${tasksOf(bench.sizes.seconds)} tasks of ${PER_TASK} partitions are called back, which is not measured. Then ${CLIENTS} clients ` +
        `pull and settle all of them, in batches of ${BATCH}. Each task that ends is an event. In the end of a round ` +
        `${pending} of them are pending.`,
      `A round is ${SLICES} slices of each of two new services, in turns. Its figures are means of the middle half of its slices: ` +
        'a machine that stalls for a moment would decide the mean of all. Rates and processor times include writing all ' +
        'rows of the slice.',
    ],
  }
}

/** Rows are written before a view is read. */
async function flushed(service: string): Promise<void> {
  await (await fetch(`${service}/tasks?limit=1`)).arrayBuffer()
}

const tasksOf = (seconds: number): number => Math.max(FEWEST_TASKS, Math.ceil(seconds * TASKS_PER_SECOND))

function together(slices: readonly Measurement[]): Measurement {
  const valuesOf = (field: keyof Omit<Measurement, 'remark'>) =>
    slices.map((slice) => slice[field] ?? Number.NaN)
  return {
    rate: middleMean(valuesOf('rate')),
    p50Ms: median(valuesOf('p50Ms')),
    p99Ms: median(valuesOf('p99Ms')),
    serverCpuSeconds: middleMean(valuesOf('serverCpuSeconds')),
    serverRssMb: valuesOf('serverRssMb').at(-1) ?? Number.NaN,
    clientCpuSeconds: middleMean(valuesOf('clientCpuSeconds')),
  }
}

async function subscribe(service: string, url: string): Promise<void> {
  const { ok, status } = await fetch(`${service}/subscriptions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ url, types: ['task.done'] }),
  })
  if (!ok) throw new Error(`the subscription was answered ${status}`)
}

async function pendingOf(service: string): Promise<string> {
  const { subscriptions } = (await (await fetch(`${service}/subscriptions`)).json()) as SubscriptionList
  const pending = subscriptions[0]?.pending ?? 0
  return pending === 10_000 ? '10,000 or more' : String(pending)
}

export const webhooks: Scenario = {
  name: 'webhooks',
  title: 'Tasks that end while a receiver of webhooks is dead, SQLite',
  run,
}
