import { startPatroniFleet } from './patroni/patroni-fleet.ts'
import { findPatroniPrograms } from './patroni/patroni-programs.ts'
import { startClockFleet } from './support/clock-fleet.ts'
import { startEmbeddedFleet } from './support/embedded-fleet.ts'
import { findFaketime } from './support/false-clock.ts'
import type { Fleet } from './support/fleet.ts'
import { findPgBouncer } from './support/pgbouncer.ts'
import { startPooledFleet } from './support/pooled-fleet.ts'
import { startLoneFleet, startLossyFleet, startPostgresFleet } from './support/postgres-fleet.ts'
import type { Size } from './support/scene.ts'

interface KnownFleet {
  readonly on: string
  readonly size: Size
  start(leaseMillis: number, tell: (line: string) => void): Promise<Fleet>
  /** Throws ProgramsMissing if a required program is not installed. */
  demand?(): unknown
}

const size: Size = {
  ...{ producers: 3, workers: 24, operators: 2 },
  ...{ backlog: 12_000, ebb: 12_000, contrary: 1, maxLeases: 20 },
}

/** The fleets for `npm run chaos -- --fleet`. Those that need only `npm ci` are part of `npm test` and `npm run test:long`. */
export const fleets: Readonly<Record<string, KnownFleet>> = {
  three: { on: 'three nodes on PostgreSQL', start: startPostgresFleet, size },
  lone: { on: 'a lone node on PostgreSQL', start: startLoneFleet, size },
  lossy: {
    on: 'a pair whose standby lacks commits',
    start: startLossyFleet,
    size: { ...size, operators: 0, maxLeases: null },
  },
  embedded: { on: 'the embedded store', start: startEmbeddedFleet, size },
  patroni: { on: 'three nodes on Patroni', start: startPatroniFleet, size, demand: findPatroniPrograms },
  pgbouncer: { on: 'three nodes behind PgBouncer', start: startPooledFleet, size, demand: findPgBouncer },
  clocks: {
    on: 'three nodes with clocks of their own',
    start: startClockFleet,
    size,
    demand: findFaketime,
  },
}
