import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'

/** Registers clean-up for the end of the test. */
export type AtEnd = (cleanUp: () => Promise<void>) => void

/** A temporary folder that is removed after the test. */
export async function testFolder(atEnd: AtEnd = onTestFinished): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'baton-test-'))
  atEnd(() => rm(folder, { recursive: true, force: true }))
  return folder
}
