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

/** Records per second now; where the page has not watched long enough, what the service measured. */
export const pace = computed(() => {
  const watched = recentPace(now.value)
  if (watched !== null) return watched
  const measured = unfinishedTasks.value.reduce((sum, task) => sum + (task.recordsPerSecond ?? 0), 0)
  return unfinishedTasks.value.some((task) => task.recordsPerSecond !== null) ? measured : null
})

/** When the last of the running tasks will be done, as far as the service can say. */
export const longestEta = computed(() => {
  const running = unfinishedTasks.value.filter(({ state }) => state === 'open')
  const known = running.map(({ etaSeconds }) => etaSeconds).filter((eta) => eta !== null)
  return running.length === 0 || known.length < running.length ? null : Math.max(...known)
})
