import { afterEach } from 'vitest'
import type { Disk } from '../../../src/handoff/disk.ts'

/** What a disk has to provide to run this suite. */
export interface DiskHarness {
  readonly name: string
  /** An empty disk; `open` was not called yet. */
  create(): Promise<DiskUnderTest>
}

export interface DiskUnderTest {
  /** The current disk; another object after `crash`. */
  readonly disk: Disk
  /**
   * Ends the process that uses it without a close, and starts another on the same data. `open` was not called
   * yet.
   */
  crash(): Promise<void>
  /** Closes it and removes what it stored. */
  dispose(): Promise<void>
}

/** Provides the tests of a topic with open disks. */
export function disksOf(harness: DiskHarness): () => Promise<DiskUnderTest> {
  const created: DiskUnderTest[] = []
  afterEach(async () => {
    for (const under of created.splice(0)) await under.dispose()
  })
  return async () => {
    const under = await harness.create()
    created.push(under)
    await under.disk.open()
    return under
  }
}
