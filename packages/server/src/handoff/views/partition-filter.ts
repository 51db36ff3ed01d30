import { parsePartitionName, partitionName } from '@baton/protocol'
import {
  everyNumber,
  inBoth,
  type NumberRuns,
  noNumber,
  numbersBeginningWith,
  numbersWithin,
  onlyNumber,
} from './number-runs.ts'
import type { PartitionQuery } from './queries.ts'

/** Which partitions of a task have the level, the indexes and the name of a query. */
export interface PartitionFilter {
  readonly levels: NumberRuns
  readonly indexes: NumberRuns
  /** Whether it has all indexes of its levels, so that partitions may be read in the order of arrival, too. */
  readonly hasEveryIndex: boolean
  /** Null: every partition on these levels, with these indexes. */
  readonly hasName: ((named: PartitionName) => boolean) | null
}

interface PartitionName {
  readonly level: number
  readonly index: number
  readonly spelling: string | null
}

type Numbers = Pick<PartitionFilter, 'levels' | 'indexes'>

const all: Numbers = { levels: everyNumber, indexes: everyNumber }
const none: Numbers = { levels: noNumber, indexes: noNumber }

export function filterOf(
  query: Pick<PartitionQuery, 'taskId' | 'level' | 'indexes' | 'name'>,
): PartitionFilter {
  const { taskId, level, indexes = null, name = null } = query
  const prefix = name?.endsWith('*') ? name.slice(0, -1) : null
  const named = name === null ? all : prefix === null ? exactly(taskId, name) : beginningWith(taskId, prefix)
  return {
    levels: level === null ? named.levels : inBoth(named.levels, onlyNumber(level)),
    indexes: indexes === null ? named.indexes : inBoth(named.indexes, numbersWithin(indexes)),
    hasEveryIndex: indexes === null && named.indexes === everyNumber,
    hasName:
      prefix === null
        ? null
        : (one) => (one.spelling ?? partitionName(taskId, one.level, one.index)).startsWith(prefix),
  }
}

/** Level and index are the identity of a partition, so another spelling of its name finds it, too. */
function exactly(taskId: string, name: string): Numbers {
  const parsed = parsePartitionName(taskId, name)
  return parsed === undefined ? none : { levels: onlyNumber(parsed.level), indexes: onlyNumber(parsed.index) }
}

function beginningWith(taskId: string, prefix: string): Numbers {
  const start = `${taskId}-`
  if (start.startsWith(prefix)) return all
  const [, level, index] = /^(\d{1,16})(?:-(\d{0,16}))?$/.exec(prefix.slice(start.length)) ?? []
  if (!prefix.startsWith(start) || level === undefined) return none
  if (index === undefined) return { levels: digitsOf(level), indexes: everyNumber }
  return { levels: onlyNumber(Number(level)), indexes: digitsOf(index) }
}

/** With leading zeros a producer may have spelled any number, so each name is compared. */
const digitsOf = (digits: string): NumberRuns =>
  digits === '' || digits.startsWith('0') ? everyNumber : numbersBeginningWith(digits)
