import { Backlog } from '../harness/hand-off-contender.ts'
import { type Helper, startHelper } from '../harness/helper-process.ts'
import { usageDuring } from '../harness/process-usage.ts'
import type { ConnectInput, ConsumerCalls } from './consumer-process.ts'
import type { PeerContender, PeersBench } from './peer.ts'

export interface Way extends Pick<PeerContender, 'label' | 'work' | 'setting' | 'favoured' | 'hurt'> {
  way: string
  firstGuess: number
}

export interface LibraryPeer {
  connect: ConnectInput
  /** The processes that count as the server. */
  watched: readonly number[]
  afterFill?(): Promise<void>
  ways: readonly Way[]
}

/** A peer that is used through its own library, in a separate process. */
export async function libraryContenders(bench: PeersBench, peer: LibraryPeer): Promise<PeerContender[]> {
  const script = new URL('./consumer-process.ts', import.meta.url)
  const process: Helper<ConsumerCalls> = startHelper<ConsumerCalls>(script, bench.cleanUp)
  await process.call('connect', peer.connect)
  const backlog = new Backlog(async (partitions) => {
    await process.call('fill', { partitions })
    await peer.afterFill?.()
  })
  return peer.ways.map(({ way, firstGuess, ...about }) => {
    let expectedRate = firstGuess
    return {
      ...about,
      id: `${peer.connect.peer}/${way}`,
      async prepare(seconds) {
        const left = await process.call('left', undefined as never)
        if (left !== undefined) backlog.holds(left)
        await backlog.ensureFor(expectedRate, seconds)
      },
      async measure(seconds) {
        const { consumers, batch } = bench
        const { result, usage } = await usageDuring(peer.watched, () =>
          process.call('consume', { way, consumers, batch, seconds }),
        )
        if (result.partitions === 0) throw new Error(`${about.label} acknowledged nothing`)
        backlog.taken(result.partitions)
        const rate = result.partitions / result.seconds
        expectedRate = Math.max(rate, firstGuess)
        return {
          rate,
          serverCpuSeconds: usage.cpuSeconds,
          clientCpuSeconds: result.clientCpuSeconds,
          ...(result.seconds < seconds * 0.8 ? { remark: `ended after ${result.seconds.toFixed(1)} s` } : {}),
        }
      },
    } satisfies PeerContender
  })
}
