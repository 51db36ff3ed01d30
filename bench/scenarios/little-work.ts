import { type Bench, type Scenario, startLoad } from '../harness/bench.ts'
import { temporaryFolder } from '../harness/clean-up.ts'
import { usageDuring } from '../harness/process-usage.ts'
import { startBaton } from '../harness/services.ts'

async function run(bench: Bench) {
  const { sizes, progress, cleanUp } = bench
  const load = startLoad(bench)
  const baton = await startBaton({ dataFolder: temporaryFolder('data', cleanUp) }, cleanUp)
  const work = { url: baton.url, pollers: sizes.pollers }
  await load.call('littleWork', { ...work, partitionsPerSecond: 1, seconds: 1 })
  progress.say(`${sizes.pollers} long polls and nothing to hand off for ${sizes.idleSeconds} s`)
  const idle = await usageDuring([baton.pid], () =>
    load.call('littleWork', { ...work, partitionsPerSecond: 0, seconds: sizes.idleSeconds }),
  )
  progress.say(`one partition a second for ${sizes.littleWorkSeconds} s`)
  const busy = await usageDuring([baton.pid], () =>
    load.call('littleWork', { ...work, partitionsPerSecond: 1, seconds: sizes.littleWorkSeconds }),
  )
  const { handOff, handedOff, calledBack } = busy.result
  return {
    rows: [],
    figures: [
      {
        label: `handed off of ${calledBack}`,
        unit: '' as const,
        values: [handedOff],
        goal: { atLeast: calledBack },
      },
      { label: 'call-back sent to partition received, p50', unit: 'ms' as const, values: [handOff.p50Ms] },
      { label: 'call-back sent to partition received, p99', unit: 'ms' as const, values: [handOff.p99Ms] },
      {
        label: 'processor, nothing to hand off',
        unit: '%' as const,
        values: [(idle.usage.cpuSeconds / sizes.idleSeconds) * 100],
        goal: { atMost: 2 },
      },
      {
        label: 'processor, one partition a second',
        unit: '%' as const,
        values: [(busy.usage.cpuSeconds / sizes.littleWorkSeconds) * 100],
      },
      { label: 'memory', unit: 'MB' as const, values: [busy.usage.rssMb] },
    ],
    notes: [`${sizes.pollers} workers in long polls of 20 s, opened again when they end.`],
  }
}

export const littleWork: Scenario = { name: 'little-work', title: 'More workers than work, SQLite', run }
