import { type CleanUp, temporaryFolder } from '../harness/clean-up.ts'
import type { Backlog } from '../harness/hand-off-contender.ts'
import { type Helper, startHelper } from '../harness/helper-process.ts'
import { usageDuring } from '../harness/process-usage.ts'
import type { Contender } from '../harness/rounds.ts'
import type { BarePostgresCalls } from './bare-postgres.ts'
import type { BareSqliteCalls } from './bare-sqlite.ts'

/** A bare store on its own file, in its own process. */
export async function startBareSqlite(cleanUp: CleanUp): Promise<Helper<BareSqliteCalls>> {
  const folder = temporaryFolder('bare', cleanUp)
  const bare = startHelper<BareSqliteCalls>(new URL('./bare-sqlite.ts', import.meta.url), cleanUp)
  await bare.call('open', { folder })
  return bare
}

export function barePairs(
  bare: Helper<BareSqliteCalls>,
  backlog: Backlog,
  perTransaction: number,
): Contender {
  const firstGuess = perTransaction < 100 ? 60_000 : 120_000
  let expectedRate = firstGuess
  return {
    label: `bare SQLite loop, ${perTransaction} claims and settles per transaction`,
    prepare: (seconds) => backlog.ensureFor(expectedRate, seconds),
    async measure(seconds) {
      const { result, usage } = await usageDuring([bare.pid], () =>
        bare.call('pairs', { perTransaction, seconds }),
      )
      backlog.taken(result.partitions)
      const rate = result.partitions / result.seconds
      expectedRate = Math.max(rate, firstGuess)
      return { rate, serverCpuSeconds: usage.cpuSeconds, serverRssMb: usage.rssMb }
    },
  }
}

export function bareInsert(bare: Helper<BareSqliteCalls>, descriptorsPerArray: number): Contender {
  return {
    label: `bare SQLite insert of ${descriptorsPerArray} per transaction`,
    async measure(seconds) {
      const { result, usage } = await usageDuring([bare.pid], () =>
        bare.call('insert', { descriptorsPerArray, seconds }),
      )
      return {
        rate: result.partitions / result.seconds,
        serverCpuSeconds: usage.cpuSeconds,
        serverRssMb: usage.rssMb,
      }
    },
  }
}

/** The hand-written loop. The server's processor time is PostgreSQL's; the client's is that of the loop. */
export function handWrittenPairs(
  bare: Helper<BarePostgresCalls>,
  postgresPid: number,
  backlog: Backlog,
  work: { consumers: number; batch: number },
): Contender {
  const firstGuess = work.batch === 1 ? 6_000 : 40_000
  let expectedRate = firstGuess
  const batches = work.batch === 1 ? 'one by one' : `batches of ${work.batch}`
  return {
    label: `hand-written PostgreSQL, ${work.consumers} consumers, ${batches}`,
    prepare: (seconds) => backlog.ensureFor(expectedRate, seconds),
    async measure(seconds) {
      const { result, usage } = await usageDuring([postgresPid], () =>
        bare.call('pairs', { ...work, seconds }),
      )
      backlog.taken(result.partitions)
      const rate = result.partitions / result.seconds
      expectedRate = Math.max(rate, firstGuess)
      return {
        rate,
        p50Ms: result.latency.p50Ms,
        p99Ms: result.latency.p99Ms,
        serverCpuSeconds: usage.cpuSeconds,
      }
    },
  }
}
