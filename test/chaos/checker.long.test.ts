import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { seed } from './support/chance.ts'
import { type Mutant, mutants, startMutantFleet } from './support/mutants.ts'
import { run } from './support/run.ts'

const size = { producers: 2, workers: 8, operators: 0, backlog: 200, ebb: 200, contrary: 1, maxLeases: 5 }

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
