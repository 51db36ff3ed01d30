import type { Cluster } from './cluster/open-cluster.ts'
import type { WallClock } from './handoff/clock.ts'
import type { Disk } from './handoff/disk.ts'
import { openEngine } from './handoff/engine/engine-store.ts'
import { leaseSecrets } from './handoff/lease-id.ts'
import type { Log } from './handoff/log.ts'
import type { OpenWorkMeter } from './handoff/open-work-meter.ts'
import type { Policy } from './handoff/rules/policy.ts'
import type { Store } from './handoff/store.ts'
import type { Tracing } from './tracing.ts'

// Opens the engine on a disk, and loads only that one, because a database driver takes time to load.

export interface StoreOptions {
  readonly policy: Policy
  readonly node?: string | undefined
  /** For tests that control the time. */
  readonly clock?: WallClock | undefined
  readonly tracing?: Pick<Tracing, 'watch'> | undefined
  /** Has the limits of open work. */
  readonly openWork?: OpenWorkMeter | undefined
}

interface EmbeddedStoreOptions extends StoreOptions {
  readonly folder: string
  /** Called with warnings for the operator about the data folder. */
  readonly warn?: (text: string) => void
}

export async function openEmbeddedStore(options: EmbeddedStoreOptions): Promise<Store> {
  const { folder, warn, clock = Date.now } = options
  const { openSqliteDisk } = await import('./disk/sqlite/sqlite-disk.ts')
  const disk = await openSqliteDisk({ folder, warn })
  try {
    return await openEngineOn(disk, clock, options)
  } catch (error) {
    await disk.close()
    throw error
  }
}

const openEngineOn = (disk: Disk, clock: WallClock, { policy, node, tracing, openWork }: StoreOptions) =>
  openEngine({
    disk: tracing?.watch(disk) ?? disk,
    clock,
    policy,
    node,
    openWork,
    limits: openWork?.limits,
    random: Math.random,
    secret: leaseSecrets(),
  })

interface SharedStoreOptions extends StoreOptions {
  readonly url: string
  readonly log: Log
  /** CA certificates for TLS between nodes; null for those of the system. */
  readonly peerCa?: Buffer | null
}

/** The store of a node that shares a database, whose name without password is `database`. */
export async function openSharedStore(
  options: SharedStoreOptions,
): Promise<{ cluster: Cluster; database: string }> {
  const { url, log, clock, peerCa = null } = options
  const [{ openPostgresDisk }, { describeServer }, { openCluster }] = await Promise.all([
    import('./disk/postgres/postgres-disk.ts'),
    import('./disk/postgres/session/connector.ts'),
    import('./cluster/open-cluster.ts'),
  ])
  const cluster = await openCluster({
    openDisk: (self) => openPostgresDisk({ url, node: self, log }),
    openEngine: ({ disk, clock: leaders }) => openEngineOn(disk, clock ?? leaders, options),
    log,
    trusted: peerCa,
  })
  return { cluster, database: describeServer(url) }
}
