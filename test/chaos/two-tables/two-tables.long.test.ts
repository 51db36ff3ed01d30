import { expect, test } from 'vitest'
import { seed } from '../support/chance.ts'
import { startEmbeddedFleet } from '../support/embedded-fleet.ts'
import type { Fleet } from '../support/fleet.ts'
import { startMutantFleet } from '../support/mutants.ts'
import { twoTables } from './run.ts'

/** Few: `npm run chaos -- --two-tables` has a million partitions. */
const PARTITIONS = 2400

async function runOn(startFleet: (leaseMillis: number) => Promise<Fleet>, disturbances: number) {
  const told: string[] = []
  const outcome = await twoTables({
    ...{ seed, leaseMillis: 700, partitions: PARTITIONS, workers: 3, batch: 60, disturbances, startFleet },
    choose: (all) => all,
    tell: (line) => told.push(line),
  })
  return { ...outcome, told: told.join('\n') }
}

test(`a fleet of workers finishes its table while that of another is away (CHAOS_SEED=${seed})`, async () => {
  const { findings, partitions, wrong, happened, doneWhileAway, told } = await runOn(startEmbeddedFleet, 3)
  expect(findings, told).toEqual([])
  expect({ partitions, wrong, doneWhileAway }, told).toEqual({
    partitions: PARTITIONS,
    wrong: 0,
    doneWhileAway: 0,
  })
  expect(happened['kill'], told).toBeGreaterThan(0)
}, 300_000)

test(`a service that ignores the table of a settle that pulls is found (CHAOS_SEED=${seed})`, async () => {
  const ignoresTable = {
    name: 'ignores the table of a settle that pulls',
    finding: /was handed to a pull of/,
    make: () => ({
      hear: <Heard extends { readonly path: string }>(heard: Heard): Heard =>
        heard.path.startsWith('/settle?')
          ? { ...heard, path: heard.path.replace(/table=[^&]*&/, '') }
          : heard,
    }),
  }
  const { findings, wrong } = await runOn((leaseMillis) => startMutantFleet(ignoresTable, leaseMillis), 0)
  expect(findings).toContainEqual(expect.stringMatching(ignoresTable.finding))
  expect(wrong).toBeGreaterThan(0)
}, 300_000)
