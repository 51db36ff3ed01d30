import { execFileSync } from 'node:child_process'
import { Skipped } from '../../harness/bench.ts'

/** The version line of a server program, or `Skipped` with how to get it. */
export function installed(program: string, versionFlag: string, debianPackage: string): string {
  const search = `${process.env['PATH'] ?? ''}:/usr/sbin:/usr/local/sbin`
  try {
    return execFileSync(program, [versionFlag], {
      encoding: 'utf8',
      env: { ...process.env, PATH: search },
    }).trim()
  } catch {
    throw new Skipped(`${program} is not installed (on Debian: apt-get install ${debianPackage})`)
  }
}
