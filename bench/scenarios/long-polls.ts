import { setTimeout as sleep } from 'node:timers/promises'
import { type Bench, type Scenario, startLoad } from '../harness/bench.ts'
import { temporaryFolder } from '../harness/clean-up.ts'
import { processUsage, usageDuring } from '../harness/process-usage.ts'
import { startBaton } from '../harness/services.ts'
import type { WakeResult } from '../load/workloads/waiting-pulls.ts'

interface Round {
  idleCpuPercent: number
  rssMb: number
  wakeCpuSeconds: number
  wake: WakeResult
}

async function run(bench: Bench) {
  const { sizes, progress, cleanUp } = bench
  const load = startLoad(bench)
  // All of them come from one address, and the producer as well.
  const connections = String(2 * sizes.longPolls)
  const baton = await startBaton({ dataFolder: temporaryFolder('data', cleanUp) }, cleanUp, {
    BATON_MAX_CONNECTIONS: connections,
    BATON_MAX_CONNECTIONS_PER_ADDRESS: connections,
  })
  // Run the code paths once with a few connections before thousands wait.
  await load.call('openWaitingPulls', { url: baton.url, pulls: 10 })
  await load.call('wakeWaitingPulls', { partitions: 10, watchSeconds: 0.5 })
  load.call('closeWaitingPulls', undefined)
  const rounds: Round[] = []
  for (let round = 1; round <= sizes.rounds; round++) {
    const { seconds } = await load.call('openWaitingPulls', { url: baton.url, pulls: sizes.longPolls })
    progress.say(
      `round ${round}/${sizes.rounds}: ${sizes.longPolls} long polls open after ${seconds.toFixed(1)} s`,
    )
    // Everything sent must have been read before the idle server is measured.
    await sleep(500 + sizes.longPolls / 4)
    const { usage } = await usageDuring([baton.pid], () => sleep(sizes.idleSeconds * 1000))
    const idleCpuPercent = (usage.cpuSeconds / sizes.idleSeconds) * 100
    const watched = await usageDuring([baton.pid], () =>
      load.call('wakeWaitingPulls', { partitions: sizes.wokenPartitions, watchSeconds: sizes.wakeSeconds }),
    )
    const wake = watched.result
    rounds.push({
      idleCpuPercent,
      rssMb: processUsage(baton.pid).rssMb,
      wakeCpuSeconds: watched.usage.cpuSeconds,
      wake,
    })
    progress.say(
      `round ${round}/${sizes.rounds}: ${wake.woken} woken, p99 ${wake.wakeUp.p99Ms.toFixed(1)} ms, ` +
        `${wake.wokenForNothing} for nothing, ${wake.stillWaiting} still waiting`,
    )
    await load.call('closeWaitingPulls', undefined)
    await sleep(500)
  }
  const of = (value: (round: Round) => number) => rounds.map(value)
  const { longPolls, wokenPartitions } = sizes
  return {
    rows: [],
    figures: [
      {
        label: `answered of ${wokenPartitions}`,
        unit: '' as const,
        values: of((r) => r.wake.woken),
        goal: { atLeast: wokenPartitions },
      },
      { label: 'woken unnecessarily', unit: '' as const, values: of((r) => r.wake.wokenForNothing) },
      { label: 'still waiting', unit: '' as const, values: of((r) => r.wake.stillWaiting) },
      {
        label: 'call-back sent to answered, p50',
        unit: 'ms' as const,
        values: of((r) => r.wake.wakeUp.p50Ms),
      },
      {
        label: 'call-back sent to answered, p99',
        unit: 'ms' as const,
        values: of((r) => r.wake.wakeUp.p99Ms),
      },
      { label: 'the call-back itself', unit: 'ms' as const, values: of((r) => r.wake.callBackMs) },
      { label: 'processor while all wait', unit: '%' as const, values: of((r) => r.idleCpuPercent) },
      { label: 'processor seconds of the wake-up', unit: 's' as const, values: of((r) => r.wakeCpuSeconds) },
      { label: 'memory', unit: 'MB' as const, values: of((r) => r.rssMb) },
    ],
    notes: [`${longPolls} connections in a long poll, then one call-back of ${wokenPartitions} partitions.`],
  }
}

export const longPolls: Scenario = {
  name: 'long-polls',
  title: 'Thousands of waiting long polls, SQLite',
  run,
}
