import type { Bench, Scenario } from '../harness/bench.ts'
import { startCompared } from '../harness/compared-servers.ts'
import { usageDuring } from '../harness/process-usage.ts'
import { type Contender, interleave, rowOf } from '../harness/rounds.ts'
import type { Service } from '../harness/services.ts'
import { bareInsert, startBareSqlite } from '../limits/bare-contenders.ts'
import { quotient } from '../report/model.ts'

async function run(bench: Bench) {
  const { load, baton, nullServer } = await startCompared(bench)
  const bare = await startBareSqlite(bench.cleanUp)
  const over = (name: string, service: Service, descriptorsPerArray: number): Contender => ({
    label: `${name}, arrays of ${descriptorsPerArray}`,
    async measure(seconds) {
      const { result, usage } = await usageDuring([service.pid], () =>
        load.call('callBacks', { url: service.url, descriptorsPerArray, seconds }),
      )
      return {
        rate: result.descriptors / result.seconds,
        p50Ms: result.latency.p50Ms,
        p99Ms: result.latency.p99Ms,
        serverCpuSeconds: usage.cpuSeconds,
        serverRssMb: usage.rssMb,
        clientCpuSeconds: result.clientCpuSeconds,
      }
    },
  })
  const sizes = [bench.sizes.smallCallBack, bench.sizes.largeCallBack]
  const groups = sizes.map((size) => ({
    size,
    baton: over('Baton', baton, size),
    bare: bareInsert(bare, size),
    nullServer: over('null server (parses, stores nothing)', nullServer, size),
  }))
  const contenders = groups.flatMap((group) => [group.baton, group.bare, group.nullServer])
  const rows = await interleave(contenders, bench.sizes, bench.progress)
  return {
    rows,
    figures: groups.map((group) =>
      quotient(
        `arrays of ${group.size}: Baton ÷ bare insert`,
        rowOf(rows, group.baton),
        rowOf(rows, group.bare),
        {
          atLeast: 0.6,
        },
      ),
    ),
    notes: ['One producer, one array after the other; descriptors per second. Latency is per array.'],
  }
}

export const callBack: Scenario = {
  name: 'call-back',
  title: 'Call-back of small and huge arrays, SQLite',
  run,
}
