import type { Disk } from '../disk.ts'
import type { Memory } from './state/memory.ts'
import type { Partition } from './state/memory-rows.ts'

const NONE: ReadonlyMap<number, string> = new Map()

/** The checkpoints of these partitions, by id. Reads the disk only if one of them has a flushed checkpoint. */
export async function checkpointsOf(
  memory: Memory,
  disk: Pick<Disk, 'checkpoints'>,
  partitions: readonly Pick<Partition, 'id' | 'checkpointAt'>[],
): Promise<ReadonlyMap<number, string>> {
  const having = partitions.filter(({ checkpointAt }) => checkpointAt !== null)
  if (having.length === 0) return NONE
  const found = new Map<number, string>()
  const missing: number[] = []
  for (const { id } of having) {
    const unflushed = memory.checkpoints.get(id)
    if (unflushed === undefined) missing.push(id)
    else found.set(id, unflushed.text)
  }
  if (missing.length > 0)
    for (const { partition, text } of await disk.checkpoints(missing)) found.set(partition, text)
  return found
}

/** What a view shows of how far the work on a partition is. */
export function workOf(
  { id, progress }: Pick<Partition, 'id' | 'progress'>,
  checkpoints: ReadonlyMap<number, string>,
) {
  const checkpoint = checkpoints.get(id)
  return { ...(progress === null ? {} : { progress }), ...(checkpoint === undefined ? {} : { checkpoint }) }
}
