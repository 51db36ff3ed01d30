import { execFileSync } from 'node:child_process'

/** Thrown by a peer whose server is not installed; its message explains how to install it. */
export class NotInstalled extends Error {}

/** The version line of a server program. */
export function installed(program: string, versionFlag: string, debianPackage: string): string {
  const search = `${process.env['PATH'] ?? ''}:/usr/sbin:/usr/local/sbin`
  try {
    return execFileSync(program, [versionFlag], {
      encoding: 'utf8',
      env: { ...process.env, PATH: search },
    }).trim()
  } catch {
    throw new NotInstalled(`${program} is not installed (on Debian: apt-get install ${debianPackage})`)
  }
}
