import { mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll } from 'vitest'

/** A folder for all tests of a file. */
export function temporaryFolder(): () => string {
  let folder = ''
  beforeAll(async () => {
    folder = await realpath(await mkdtemp(join(tmpdir(), 'baton-packages-')))
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))
  return () => folder
}
