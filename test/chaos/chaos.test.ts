import { expect, test } from 'vitest'
import { startEmbeddedFleet } from './support/embedded-fleet.ts'
import { startLoneFleet, startPostgresFleet } from './support/postgres-fleet.ts'
import { run } from './support/run.ts'
import { mostlyPlain } from './support/scene.ts'
import { seed } from './support/seed.ts'
import { everyDisturbance } from './support/storm.ts'

const size = { producers: 2, workers: 12, operators: 2, backlog: 1500, ebb: 1500, batch: 50, contrary: 1 }

test.each([
  { name: 'a fleet of three nodes on PostgreSQL', startFleet: startPostgresFleet, size },
  { name: 'a lone node on PostgreSQL', startFleet: startLoneFleet, size: mostlyPlain(size) },
  { name: 'a node with its embedded store', startFleet: startEmbeddedFleet, size },
])(
  `$name keeps its promises whatever happens to it (CHAOS_SEED=${seed})`,
  async ({ startFleet, size: of }) => {
    const told: string[] = []
    const tell = (line: string) => told.push(line)
    const { findings, leases } = await run({
      ...{ seed, leaseMillis: 700, size: of, startFleet, tell },
      storm: (scene, disturbances) => everyDisturbance(scene, disturbances, tell),
    })
    expect(findings, told.join('\n')).toEqual([])
    expect(leases, told.join('\n')).toBeGreaterThan(500)
  },
  600_000,
)
