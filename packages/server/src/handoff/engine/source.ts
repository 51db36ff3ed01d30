import type { Line } from '../partition.ts'
import { LineBuffer } from './state/line-buffer.ts'
import type { Lane, LaneTable, Lines } from './state/memory.ts'
import { firstWaiting, retriesOf } from './waiting-lines.ts'

/** What a pull is served from: a lane, or one table of a lane. */
export type Source = Lane | LaneTable

export const laneOf = (source: Source): Lane => ('home' in source ? source.home : source)

/** Set if the source covers only some of the lane's partitions. */
export const onlyTableOf = (source: Source): string | undefined =>
  'home' in source && source.home.onlyTable === null ? source.table : undefined

export function linesOf(source: Source): Lines {
  if (!('home' in source)) return source.lines
  if (source.home.onlyTable === source) return source.home.lines
  source.lines ??= beginLines(source)
  return source.lines
}

/** Starts with the partitions in memory, because the disk may be behind. The others are read. */
function beginLines({ home, table }: LaneTable): Lines {
  const begin = (line: Line) => {
    const buffer = new LineBuffer<Lines[Line]['items'][number]>(false)
    for (const partition of home.lines[line].items)
      if (partition.computeTable === table) buffer.items.push(partition)
    return buffer
  }
  return { fresh: begin('fresh'), released: begin('released'), retry: begin('retry') }
}

/**
 * Within a lane, released partitions come first. Between the first queue and retries, the smaller tag comes
 * first.
 */
export function lineToServe(source: Source): Line {
  const retries = retriesOf(source)
  if (firstWaiting(source) === 0 || (retries > 0 && source.retryTag < source.tag)) return 'retry'
  const { released } = 'home' in source && source.home.onlyTable === source ? source.home : source
  return released > 0 ? 'released' : 'fresh'
}
