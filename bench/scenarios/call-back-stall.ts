import type { Bench, Scenario } from '../harness/bench.ts'
import { startCompared } from '../harness/compared-servers.ts'
import type { Helper } from '../harness/helper-process.ts'
import { startNodes, startPostgresCompared, urlsOf } from '../harness/postgres-compared.ts'
import type { LoadCalls } from '../load/load-process.ts'
import type { LargeCallBackResult } from '../load/workloads/large-call-back-during-pulls.ts'
import type { Figure } from '../report/model.ts'

const PULLERS = 8
const CALL_BACKS_PER_ROUND = 3
/** 100,000 descriptors: not even the largest call-back may delay a pull for long. */
const TIMES_AS_LARGE = 2

async function onSqlite(bench: Bench) {
  const { load, baton } = await startCompared(bench)
  return measure(bench, load, baton.url)
}

async function onPostgres(bench: Bench) {
  const compared = await startPostgresCompared(bench)
  const nodes = await startNodes(bench, compared, 1)
  return measure(bench, compared.load, urlsOf(nodes)[0])
}

async function measure(bench: Bench, load: Helper<LoadCalls>, url: string) {
  const descriptors = bench.sizes.largeCallBack * TIMES_AS_LARGE
  await load.call('fill', { url, partitions: 20_000 })
  const observe = (callBacks: number) =>
    load.call('largeCallBackDuringPulls', {
      url,
      descriptors,
      callBacks,
      pullers: PULLERS,
      quietSeconds: Math.max(0.5, Math.min(1, bench.sizes.seconds)),
    })
  bench.progress.say('warm-up')
  await observe(1)
  const rounds: LargeCallBackResult[] = []
  for (let round = 1; round <= bench.sizes.rounds; round++) {
    const result = await observe(CALL_BACKS_PER_ROUND)
    rounds.push(result)
    bench.progress.say(
      `round ${round}/${bench.sizes.rounds}: longest probe ${result.probe.maxMs.toFixed(1)} ms, ` +
        `longest pull or settle ${result.handOff.maxMs.toFixed(1)} ms`,
    )
  }
  const figure = (label: string, value: (result: LargeCallBackResult) => number): Figure => ({
    label,
    unit: 'ms',
    values: rounds.map(value),
  })
  return {
    rows: [],
    figures: [
      { ...figure('longest answer of /livez meanwhile', (r) => r.probe.maxMs), goal: { atMost: 50 } },
      figure('the same while no array is sent', (r) => r.quietProbe.maxMs),
      figure('p99 of /livez meanwhile', (r) => r.probe.p99Ms),
      { ...figure('longest pull or settle meanwhile', (r) => r.handOff.maxMs), goal: { atMost: 50 } },
      figure('the same while no array is sent', (r) => r.quietHandOff.maxMs),
      figure('p99 of pull and settle meanwhile', (r) => r.handOff.p99Ms),
      figure('the call-back itself, longest', (r) => Math.max(...r.callBackMs)),
      figure('longest lateness of the client itself', (r) => r.clientLateMs),
    ],
    notes: [
      `${CALL_BACKS_PER_ROUND} arrays of ${descriptors} per round, with ${PULLERS} workers and a probe every millisecond.`,
      'The probe needs the event loop only; pulls and settles wait for the store as well.',
    ],
  }
}

export const callBackStall: Scenario = {
  name: 'call-back-stall',
  title: 'How long others wait while a huge array is called back, SQLite',
  run: onSqlite,
}

export const postgresCallBackStall: Scenario = {
  name: 'postgres-call-back-stall',
  title: 'How long others wait while a huge array is called back, PostgreSQL',
  run: onPostgres,
}
