import { throughputSteps } from '@baton/protocol'
import type { ForgetThroughput, ThroughputRowsQuery } from '../../handoff/disk.ts'
import type { ThroughputRow } from '../../handoff/views/throughput.ts'
import type { MemoryMedium } from './memory-medium.ts'

export function throughputIn(medium: MemoryMedium, query: ThroughputRowsQuery): ThroughputRow[] {
  const { task, step, from, to, byLevel, limit } = query
  const found = [...medium.throughput.values()]
    .filter((row) => row.task === task && row.step === step && row.at >= from && row.at < to)
    .sort((a, b) => b.at - a.at || b.level - a.level)
  const rows = new Map<string, ThroughputRow>()
  for (const { at, level, partitions, records } of found) {
    const key = byLevel ? `${at}:${level}` : `${at}`
    const before = rows.get(key)
    rows.set(key, {
      at,
      level: byLevel ? level : null,
      partitions: partitions + (before?.partitions ?? 0),
      records: Math.min(records + (before?.records ?? 0), Number.MAX_SAFE_INTEGER),
    })
  }
  return [...rows.values()].slice(0, limit)
}

export function forgetThroughputIn(medium: MemoryMedium, { before, most, limit }: ForgetThroughput): number {
  const gone = throughputSteps.flatMap((step) => {
    const rows = [...medium.throughput].filter(([, row]) => row.step === step)
    rows.sort(([, a], [, b]) => a.at - b.at)
    const beyond = most === null ? -1 : (rows.at(-most - 1)?.[1].at ?? -1)
    return rows.filter(([, { at }]) => at < before[step] || at <= beyond).slice(0, limit)
  })
  for (const [key] of gone.slice(0, limit)) medium.throughput.delete(key)
  return Math.min(gone.length, limit)
}
