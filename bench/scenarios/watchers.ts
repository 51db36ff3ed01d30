import { type Bench, type Scenario, startLoad } from '../harness/bench.ts'
import { temporaryFolder } from '../harness/clean-up.ts'
import { Backlog, handOffContender } from '../harness/hand-off-contender.ts'
import { startHelper } from '../harness/helper-process.ts'
import { type Contender, interleave, rowOf } from '../harness/rounds.ts'
import { startBaton } from '../harness/services.ts'
import type { WatcherCalls } from '../load/watcher-process.ts'
import { quotient } from '../report/model.ts'

const CLIENTS = 64
const STREAMS = 100
/** Small tasks, so that at any moment more of them change than one tick reports. */
const PER_TASK = 500

async function run(bench: Bench) {
  const load = startLoad(bench)
  const watchers = startHelper<WatcherCalls>(
    new URL('../load/watcher-process.ts', import.meta.url),
    bench.cleanUp,
  )
  const baton = await startBaton({ dataFolder: temporaryFolder('data', bench.cleanUp) }, bench.cleanUp)
  const backlog = new Backlog(async (partitions) => {
    for (let left = partitions; left > 0; left -= PER_TASK) {
      await load.call('fill', { url: baton.url, partitions: PER_TASK })
    }
  })
  const received: number[] = []

  const contender = (label: string, streams: number, reads: boolean): Contender =>
    handOffContender({
      label,
      load,
      watched: [baton.pid],
      backlog,
      firstGuess: 12_000,
      run: async (client, seconds) => {
        await watchers.call('openStreams', { url: baton.url, streams, reads })
        try {
          return await client.call('pullThenSettle', {
            urls: [baton.url],
            clients: CLIENTS,
            seconds,
            batch: 1,
          })
        } finally {
          const megabytes = await watchers.call('closeStreams', undefined as never)
          if (streams > 0 && reads) received.push(megabytes / seconds)
        }
      },
    })

  const alone = contender('no watchers', 0, true)
  const watched = contender(`${STREAMS} event streams`, STREAMS, true)
  const unread = contender(`${STREAMS} event streams that are not read`, STREAMS, false)
  const rows = await interleave([alone, watched, unread], bench.sizes, bench.progress)
  const [aloneRow, watchedRow, unreadRow] = [alone, watched, unread].map((one) => rowOf(rows, one))
  if (!aloneRow || !watchedRow || !unreadRow) throw new Error('a contender has no row')
  return {
    rows,
    figures: [
      quotient('watched ÷ alone', watchedRow, aloneRow, { atLeast: 0.9 }),
      quotient('watched by those who do not read ÷ alone', unreadRow, aloneRow, { atLeast: 0.9 }),
      {
        label: 'task updates per second while watched',
        unit: '' as const,
        // A pull and a settle each change their task.
        values: watchedRow.measurements.map(({ rate }) => 2 * rate),
        goal: { atLeast: 10_000 },
      },
      { label: 'events sent per second, all streams', unit: 'MB' as const, values: received.slice(1) },
    ],
    notes: [
      `Tasks of ${PER_TASK} partitions, pulled and settled one by one by ${CLIENTS} clients. A page gets events of each task ` +
        'at most a few times a second, and of at most a hundred tasks at a time.',
    ],
  }
}

export const watchers: Scenario = {
  name: 'watchers',
  title: 'A hundred open pages while tasks change, SQLite',
  run,
}
