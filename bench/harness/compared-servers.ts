import type { LoadCalls } from '../load/load-process.ts'
import { type Bench, startLoad } from './bench.ts'
import { temporaryFolder } from './clean-up.ts'
import { Backlog } from './hand-off-contender.ts'
import type { Helper } from './helper-process.ts'
import { type Service, startBaton, startNullServer } from './services.ts'

/** The servers that a hand-off scenario compares, and the client that loads them. */
export interface Compared {
  load: Helper<LoadCalls>
  baton: Service
  backlog: Backlog
  nullServer: Service
}

/** Baton on its own store and the null server, both running for the whole scenario. */
export async function startCompared(bench: Bench): Promise<Compared> {
  const load = startLoad(bench)
  const dataFolder = temporaryFolder('data', bench.cleanUp)
  const baton = await startBaton({ dataFolder }, bench.cleanUp)
  const nullServer = await startNullServer(bench.cleanUp)
  return { load, baton, backlog: backlogOf(load, baton.url), nullServer }
}

export function backlogOf(load: Helper<LoadCalls>, url: string): Backlog {
  return new Backlog((partitions) => load.call('fill', { url, partitions }))
}
