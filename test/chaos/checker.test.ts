import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { seed } from './support/chance.ts'
import type { Disturbance, FleetNode } from './support/fleet.ts'
import { checkLogs, errorIn } from './support/log-checks.ts'
import { type Mutant, mutants, startMutantFleet } from './support/mutants.ts'
import { run } from './support/run.ts'
import { Findings } from './support/scene.ts'

const size = { producers: 2, workers: 8, operators: 0, backlog: 200, ebb: 200, contrary: 1 }

/** Enough work that each defect shows often, whatever the random choices of the clients. */
const PULLS = 120

async function findingsAbout(mutant: Mutant): Promise<readonly string[]> {
  const { findings } = await run({
    ...{ seed, leaseMillis: 1000, size, tell: () => {} },
    startFleet: (leaseMillis) => startMutantFleet(mutant, leaseMillis),
    storm: async ({ history }) => {
      while (history.pulls.filter(({ leases }) => leases.length > 0).length < PULLS) await sleep(20)
    },
  })
  return findings
}

// The clients mostly wait, so the fleets run concurrently.
test.concurrent.each(mutants)(
  `the checker finds a store that $name (CHAOS_SEED=${seed})`,
  async (mutant) => {
    expect(await findingsAbout(mutant)).toContainEqual(expect.stringMatching(mutant.finding))
  },
  300_000,
)

test.concurrent(`the checker finds nothing in a store without a defect (CHAOS_SEED=${seed})`, async () => {
  expect(await findingsAbout({ name: 'has no defect', finding: /^$/, make: () => ({}) })).toEqual([])
}, 300_000)

test('an error in a log is a finding, unless a disturbance before it explains it', async () => {
  const errors = [
    errorIn('{"level":50,"time":9000,"msg":"the store cannot commit"}', 500),
    errorIn('{"level":50,"time":0,"msg":"the store cannot commit"}', 1500),
    errorIn('{"level":60,"time":0,"msg":"the service ends"}', 1600),
  ].flatMap((error) => error ?? [])
  const node: FleetNode = { name: 'north', url: '', isAway: false, ends: 0, log: '', errors }
  const disturbance: Disturbance = { name: 'crash', explains: [/cannot commit/], happen: async () => {} }
  const findings = new Findings()
  checkLogs([node], [{ disturbance, at: 1000 }], findings)
  expect(findings.all).toEqual([`north logged ${errors[0]?.line}`, `north logged ${errors[2]?.line}`])
  expect(errorIn('{"level":40,"time":1,"msg":"a warning"}', 1)).toBeUndefined()
  expect(errorIn('(node:1) Warning: of the runtime', 1)).toBeUndefined()
})
