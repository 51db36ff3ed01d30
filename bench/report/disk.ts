import { closeSync, fdatasyncSync, mkdtempSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { median } from '../harness/statistics.ts'

const SYNCS = 100

/**
 * Every durable contender waits for the disk, so a reader must know what that costs here: far below 0.1 ms it is
 * memory or a cache with a battery.
 */
export function disk(): string {
  return `${fileSystem()}; writing and syncing 4 kB takes ${syncMs().toFixed(2)} ms`
}

/** Of the mount that holds the temporary folder: the longest mount point that it lies under. */
function fileSystem(): string {
  const folder = tmpdir()
  const mounts = readFileSync('/proc/mounts', 'latin1')
    .split('\n')
    .map((line) => line.split(' '))
    .filter(([, point]) => point === '/' || folder === point || folder.startsWith(`${point}/`))
    .sort(([, a = ''], [, b = '']) => b.length - a.length)
  return mounts[0]?.[2] ?? 'unknown'
}

function syncMs(): number {
  const folder = mkdtempSync(join(tmpdir(), 'baton-bench-sync-'))
  const file = openSync(join(folder, 'probe'), 'w')
  const block = Buffer.alloc(4096, 1)
  const times: number[] = []
  try {
    for (let at = 0; at < SYNCS; at++) {
      const startedAt = performance.now()
      writeSync(file, block)
      fdatasyncSync(file)
      times.push(performance.now() - startedAt)
    }
  } finally {
    closeSync(file)
    rmSync(folder, { recursive: true })
  }
  return median(times)
}
