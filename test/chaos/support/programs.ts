import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'

/** Where to look for programs. Those of servers are often not on a user's PATH. */
export const FOLDERS = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin']

export const findProgram = (name: string): string | undefined =>
  FOLDERS.map((folder) => join(folder, name)).find(existsSync)

/**
 * Nothing is installed automatically. If a program is missing, the error has the command that installs it.
 */
export class ProgramsMissing extends Error {
  constructor(fleet: string, missing: readonly string[], packages: string, ...hints: readonly string[]) {
    super(
      [
        `--fleet ${fleet} needs what is not on this machine:`,
        ...missing.map((what) => `  - ${what}`),
        'On Debian or Ubuntu, as root:',
        `  apt-get install --no-install-recommends ${packages}`,
        ...hints,
      ].join('\n'),
    )
  }
}
