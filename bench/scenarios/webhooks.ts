import type { SubscriptionList } from '@baton/protocol'
import { type Bench, type Scenario, startLoad } from '../harness/bench.ts'
import { freePort, temporaryFolder } from '../harness/clean-up.ts'
import { handOffContender } from '../harness/hand-off-contender.ts'
import type { Sizes } from '../harness/options.ts'
import { interleave, rowOf } from '../harness/rounds.ts'
import { type Service, startBaton } from '../harness/services.ts'
import { median } from '../harness/statistics.ts'
import { type Measurement, quotient, type Row } from '../report/model.ts'

const CLIENTS = 16
/** Few partitions per task, so that 100,000 tasks end within a minute at the rate of one service. */
const PER_TASK = 2
/**
 * A round consists of short slices in which the two services take turns, because an event costs less than the
 * rate of a machine varies from one second to the next. Each round has new services: two processes of the
 * same program differ as much.
 */
const SLICES = 12
/** The length of a slice, as a share of the usual measurement. */
const SLICE_SHARE = 1 / 4
const SHORTEST_SLICE = 0.1

async function run(bench: Bench) {
  const load = startLoad(bench)
  const start = () =>
    startBaton({ dataFolder: temporaryFolder('data', bench.cleanUp) }, bench.cleanUp, {
      BATON_WEBHOOK_NETWORKS: '127.0.0.1',
    })
  const contender = (label: string, service: Service) =>
    handOffContender({
      label,
      load,
      watched: [service.pid],
      firstGuess: 0,
      run: (client, seconds) =>
        client.call('wholeTasks', {
          urls: [service.url],
          clients: CLIENTS,
          seconds,
          partitionsPerTask: PER_TASK,
        }),
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
    const slices = await interleave([without, dead], inSlices(bench.sizes), bench.progress)
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
        label: 'processor time per partition, the same',
        unit: '×' as const,
        values: deadRow.measurements.map(
          (_, round) => cpuPerPartition(deadRow, round) / cpuPerPartition(withoutRow, round),
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
      `${CLIENTS} clients call back tasks of ${PER_TASK} partitions, and pull and settle them in batches of ${PER_TASK}. Each task that ` +
        `ends is an event. In the end of a round ${pending} of them are pending.`,
      `A round is ${SLICES} slices of each of two new services, in turns. Its rate is their mean, its processor time their sum.`,
    ],
  }
}

const inSlices = (sizes: Sizes): Sizes => ({
  ...sizes,
  rounds: SLICES,
  seconds: Math.max(SHORTEST_SLICE, sizes.seconds * SLICE_SHARE),
})

function together(slices: readonly Measurement[]): Measurement {
  const valuesOf = (field: keyof Omit<Measurement, 'remark'>) =>
    slices.map((slice) => slice[field] ?? Number.NaN)
  const sumOf = (field: keyof Omit<Measurement, 'remark'>) =>
    valuesOf(field).reduce((sum, value) => sum + value, 0)
  return {
    rate: sumOf('rate') / slices.length,
    p50Ms: median(valuesOf('p50Ms')),
    p99Ms: median(valuesOf('p99Ms')),
    serverCpuSeconds: sumOf('serverCpuSeconds'),
    serverRssMb: valuesOf('serverRssMb').at(-1) ?? Number.NaN,
    clientCpuSeconds: sumOf('clientCpuSeconds'),
  }
}

const cpuPerPartition = ({ measurements }: Row, round: number): number => {
  const { rate = Number.NaN, serverCpuSeconds = Number.NaN } = measurements[round] ?? {}
  return serverCpuSeconds / rate
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
