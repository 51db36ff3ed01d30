import { systemClock, type WallClock } from './handoff/clock.ts'
import { openEngine } from './handoff/engine/engine-store.ts'
import { Secrets } from './handoff/lease-secrets.ts'
import type { Policy } from './handoff/rules/policy.ts'
import type { Store } from './handoff/store.ts'

export interface EmbeddedStoreOptions {
  readonly folder: string
  /** For what an operator should know of the folder, in words. */
  readonly warn?: (text: string) => void
  readonly policy: Policy
  readonly clock?: WallClock
}

/** The engine on the embedded disk. Only the disk that is asked for is loaded: the other's driver takes time to start. */
export async function openEmbeddedStore(options: EmbeddedStoreOptions): Promise<Store> {
  const { folder, warn, policy, clock = systemClock } = options
  const { openSqliteDisk } = await import('./disk/sqlite/sqlite-disk.ts')
  const disk = await openSqliteDisk({ folder, warn })
  const secrets = new Secrets()
  try {
    return await openEngine({ disk, policy, clock, random: Math.random, secret: () => secrets.next() })
  } catch (error) {
    await disk.close()
    throw error
  }
}
