import { execFile } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { FOLDERS, findProgram, ProgramsMissing } from '../support/programs.ts'

const execute = promisify(execFile)

/** Where Debian's packages put the programs of each PostgreSQL version; these folders are not on the PATH. */
const DEBIAN = '/usr/lib/postgresql'
/** The programs that Patroni calls. The npm package of PostgreSQL lacks the last two. */
const OF_POSTGRES = ['postgres', 'initdb', 'pg_ctl', 'pg_controldata', 'pg_basebackup', 'pg_rewind']

const PACKAGES = 'patroni etcd-server python3-etcd postgresql'
const HINTS = [
  `Programs are looked for on the PATH, and those of PostgreSQL in ${DEBIAN}/*/bin first.`,
  'The services of these packages need not run: the command starts its own, on free ports.',
]

/** The programs of a Patroni cluster, as installed on this machine. */
export interface PatroniPrograms {
  readonly patroni: string
  readonly etcd: string
  /** The folder of PostgreSQL's programs. */
  readonly postgres: string
}

/** Installs nothing. If a program is missing, the error has the command that installs it. */
export async function findPatroniPrograms(): Promise<PatroniPrograms> {
  const patroni = findProgram('patroni')
  const etcd = findProgram('etcd')
  const postgres = [...debianVersions(), ...FOLDERS].find((folder) =>
    OF_POSTGRES.every((name) => existsSync(join(folder, name))),
  )
  const lacksDriver = patroni !== undefined && !(await canImport(patroni, 'etcd'))
  const missing = [
    ...(patroni === undefined ? ['patroni'] : []),
    ...(lacksDriver ? ['the Python module etcd, which Patroni needs to talk to etcd'] : []),
    ...(etcd === undefined ? ['etcd'] : []),
    ...(postgres === undefined ? [`PostgreSQL's ${OF_POSTGRES.join(', ')} (one folder, all of them)`] : []),
  ]
  if (patroni === undefined || etcd === undefined || postgres === undefined || lacksDriver)
    throw new ProgramsMissing('patroni', missing, PACKAGES, ...HINTS)
  return { patroni, etcd, postgres }
}

/** Newest first. */
function debianVersions(): string[] {
  if (!existsSync(DEBIAN)) return []
  const versions = readdirSync(DEBIAN).toSorted((a, b) => Number(b) - Number(a))
  return versions.map((version) => join(DEBIAN, version, 'bin'))
}

/** Uses the Python in the first line of Patroni's script, which need not be the first one on the PATH. */
async function canImport(script: string, module: string): Promise<boolean> {
  const [firstLine = ''] = (await readFile(script, 'utf8')).split('\n')
  const [python = 'python3', ...args] = firstLine.replace(/^#!\s*/, '').split(/\s+/)
  try {
    await execute(python, [...args, '-c', `import ${module}`])
    return true
  } catch {
    return false
  }
}
