import type { StateCounts } from '@baton/protocol'
import { computed } from '@preact/signals'
import { now } from '../service/clock.ts'
import { unfinishedTasks } from '../service/tasks.ts'
import { recentPace } from '../service/throughput.ts'

const leftOf = (counts: StateCounts) => counts.total - counts.done - counts.cancelled

/** All unfinished tasks together. */
export const totals = computed(() => {
  const sum = {
    records: 0,
    recordsLeft: 0,
    partitionsLeft: 0,
    leasedRecords: 0,
    leased: 0,
    parked: 0,
    tasks: 0,
  }
  for (const { records, partitions } of unfinishedTasks.value) {
    sum.tasks += 1
    sum.records += records.total
    sum.recordsLeft += leftOf(records)
    sum.partitionsLeft += leftOf(partitions)
    sum.leasedRecords += records.leased
    sum.leased += partitions.leased
    sum.parked += partitions.parked
  }
  return sum
})

/**
 * Records per second now, as the page sees them finished. What the service says of each task is a mean over a minute
 * and more: of a task that came to rest it would tell what has been.
 */
export const pace = computed(() => recentPace(now.value))

/** When the last of the running tasks will be done, as far as the service can say. */
export const longestEta = computed(() => {
  const running = unfinishedTasks.value.filter(({ state }) => state === 'open')
  const known = running.map(({ etaSeconds }) => etaSeconds).filter((eta) => eta !== null)
  return running.length === 0 || known.length < running.length ? null : Math.max(...known)
})
