import { readFileSync } from 'node:fs'

/** Linux reports process times in ticks of 1/100 s on every platform Node runs on. */
const TICKS_PER_SECOND = 100

export interface ProcessUsage {
  cpuSeconds: number
  rssMb: number
}

const NOTHING: ProcessUsage = { cpuSeconds: 0, rssMb: 0 }

/** Processor seconds (user + system, all threads) and resident memory of one process, from /proc. */
export function processUsage(pid: number): ProcessUsage {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The second field is the command in parentheses and may itself contain spaces.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    // The process's own user and system time, and that of children that have ended: a PostgreSQL connection
    // may close during a measurement.
    const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0)
    const status = readFileSync(`/proc/${pid}/status`, 'latin1')
    const rssKb = Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0)
    return { cpuSeconds: ticks / TICKS_PER_SECOND, rssMb: rssKb / 1024 }
  } catch {
    return NOTHING
  }
}

function childrenOf(pid: number): number[] {
  try {
    const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').trim()
    return text === '' ? [] : text.split(' ').map(Number)
  } catch {
    return []
  }
}

/**
 * The same for a process and its descendants, since PostgreSQL runs one process per connection. Shared memory
 * is resident in each of them, so the memory of a tree is only an upper bound.
 */
function processTreeUsage(pid: number): ProcessUsage {
  return childrenOf(pid).map(processTreeUsage).reduce(add, processUsage(pid))
}

function add(a: ProcessUsage, b: ProcessUsage): ProcessUsage {
  return { cpuSeconds: a.cpuSeconds + b.cpuSeconds, rssMb: a.rssMb + b.rssMb }
}

/** What the given processes used while `work` ran. The memory is what they hold at the end. */
export async function usageDuring<T>(
  pids: readonly number[],
  work: () => Promise<T>,
): Promise<{ result: T; usage: ProcessUsage }> {
  const before = pids.map(processTreeUsage).reduce(add, NOTHING)
  const result = await work()
  const after = pids.map(processTreeUsage).reduce(add, NOTHING)
  return { result, usage: { cpuSeconds: after.cpuSeconds - before.cpuSeconds, rssMb: after.rssMb } }
}
