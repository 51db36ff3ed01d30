import type { Disk } from '../disk.ts'
import type { Memory } from './state/memory.ts'
import type { Partition } from './state/memory-rows.ts'

type Checkpoints = ReadonlyMap<number, string>

const NONE: Checkpoints = new Map()

/** The checkpoints of these partitions, by id. Reads the disk only if one of them has a flushed checkpoint. */
export const checkpointsOf = (
  memory: Memory,
  disk: Pick<Disk, 'checkpoints'>,
  partitions: readonly Pick<Partition, 'id' | 'checkpointAt'>[],
): Checkpoints | Promise<Checkpoints> =>
  partitions.every(({ checkpointAt }) => checkpointAt === null) ? NONE : read(memory, disk, partitions)

async function read(...[memory, disk, partitions]: Parameters<typeof checkpointsOf>): Promise<Checkpoints> {
  const found = new Map<number, string>()
  const missing: number[] = []
  for (const { id, checkpointAt } of partitions) {
    if (checkpointAt === null) continue
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
