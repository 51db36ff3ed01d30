import { describe, expect, test } from 'vitest'
import { seed } from './chance.ts'
import type { Disturbance, Fleet } from './fleet.ts'
import { run } from './run.ts'
import type { Size } from './scene.ts'
import { everyDisturbance } from './storm.ts'

interface TestedFleet {
  readonly name: string
  readonly startFleet: (leaseMillis: number) => Promise<Fleet>
  /** Each disturbance happens once, or as often as it is in the list that this returns. */
  readonly choose?: (disturbances: readonly Disturbance[]) => readonly Disturbance[]
  readonly size?: Partial<Size>
}

/** A small run. `npm run chaos` has more clients and runs as long as requested. */
const SIZE = { producers: 2, workers: 6, operators: 2, backlog: 400, ebb: 400, contrary: 1, maxLeases: 5 }

/** Disturbances are mostly waiting time in which the machine is idle, so the fleets run concurrently. */
export function describeGuarantees(fleets: readonly TestedFleet[]): void {
  describe.concurrent.each(fleets)('$name', ({ startFleet, choose = (all) => all, size = {} }) => {
    test(`keeps its guarantees under all disturbances (CHAOS_SEED=${seed})`, async () => {
      const told: string[] = []
      const tell = (line: string) => told.push(line)
      const { findings, leases } = await run({
        ...{ seed, leaseMillis: 700, size: { ...SIZE, ...size }, startFleet, tell },
        storm: (scene, disturbances) => everyDisturbance(scene, choose(disturbances), tell),
      })
      expect(findings, told.join('\n')).toEqual([])
      expect(leases, told.join('\n')).toBeGreaterThan(500)
    }, 600_000)
  })
}
