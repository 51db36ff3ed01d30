import { describe, expect, test } from 'vitest'
import { seed } from './support/chance.ts'
import { startEmbeddedFleet } from './support/embedded-fleet.ts'
import { startLoneFleet, startLossyFleet, startPostgresFleet } from './support/postgres-fleet.ts'
import { run } from './support/run.ts'
import { everyDisturbance } from './support/storm.ts'

/** A small run. `npm run chaos` has more clients and runs as long as requested. */
const size = { producers: 2, workers: 6, operators: 2, backlog: 400, ebb: 400, contrary: 1 }

// Disturbances are mostly waiting time in which the machine is idle, so the fleets run concurrently.
describe.concurrent.each([
  { name: 'a fleet of three nodes on PostgreSQL', startFleet: startPostgresFleet, size },
  { name: 'a lone node on PostgreSQL', startFleet: startLoneFleet, size },
  {
    name: 'a fleet whose database comes back without its last commits',
    startFleet: startLossyFleet,
    size: { ...size, operators: 0 },
  },
  { name: 'a node with its embedded store', startFleet: startEmbeddedFleet, size },
])('$name', ({ startFleet, size: of }) => {
  test(`keeps its guarantees under all disturbances (CHAOS_SEED=${seed})`, async () => {
    const told: string[] = []
    const tell = (line: string) => told.push(line)
    const { findings, leases } = await run({
      ...{ seed, leaseMillis: 700, size: of, startFleet, tell },
      storm: (scene, disturbances) => everyDisturbance(scene, disturbances, tell),
    })
    expect(findings, told.join('\n')).toEqual([])
    expect(leases, told.join('\n')).toBeGreaterThan(500)
  }, 600_000)
})
