import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { CleanUp } from './clean-up.ts'

/** A folder of its own that is gone after the scenario. On a real disk only if TMPDIR is: see the README. */
export function temporaryFolder(purpose: string, cleanUp: CleanUp): string {
  const folder = mkdtempSync(join(tmpdir(), `baton-bench-${purpose}-`))
  // Servers that refuse to run as root change to a user of their own and must reach their folder in here.
  chmodSync(folder, 0o711)
  cleanUp.add(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 }))
  return folder
}
