import { setTimeout as sleep } from 'node:timers/promises'
import type { TaskView } from '@baton/protocol'
import { expect, test } from 'vitest'
import { openEmbeddedStore } from '../../packages/server/src/open-store.ts'
import { Driver, nameOf } from '../../packages/server/test/store/conformance/driver.ts'
import { DAY, TestClock, testPolicy } from '../../packages/server/test/store/conformance/harness.ts'
import { Chance, seed } from '../chaos/support/chance.ts'
import { testFolder } from '../support/test-folder.ts'
import { produce, type Stage, work } from './support/clients.ts'
import { ClientLedger } from './support/ledger.ts'
import { MortalService } from './support/service.ts'

const KILLS = 12
const TASKS = ['orders', 'prices', 'clicks']
const WORKERS = 6

/** Much longer than the test, so that a partition that is received twice was leased twice. */
const args = [
  ...['--lease-seconds', '36000', '--max-attempts', '1000000'],
  ...['--backoff-seconds', '0', '--backoff-max-seconds', '0', '--log-level', 'error'],
]

test(`a service killed ${KILLS} times under load keeps everything that it acknowledged (CHAOS_SEED=${seed})`, async () => {
  const folder = await testFolder()
  const service = new MortalService(folder, args)
  const ledger = new ClientLedger()
  const chance = new Chance(seed)
  const stage: Stage = { service, ledger, chance, isUnderFire: true }
  let isDrained = false
  const producers = Promise.all(TASKS.map((taskId) => produce(stage, taskId)))
  const workers = Promise.all(
    Array.from({ length: WORKERS }, (_, number) => work(stage, `worker-${number}`, () => isDrained)),
  )
  // A client that finds a violation ends the test, whatever the others are doing.
  const clientFailed = Promise.all([producers, workers]).then(() => new Promise<never>(() => {}))

  await Promise.race([killAgainAndAgain(stage), clientFailed])
  stage.isUnderFire = false
  await producers
  await Promise.race([drained(service), clientFailed])
  isDrained = true
  await workers
  const states = await statesOf(service)
  ledger.compare(states)
  expect(ledger.violations).toEqual([])

  const unfinished = [...states].filter(([, state]) => state !== 'done')
  expect(unfinished.every(([, state]) => state === 'leased')).toBe(true)
  expect(unfinished.length).toBeLessThanOrEqual(ledger.lostLeases)
  expect(ledger.accepted.length).toBeGreaterThan(KILLS * 5)
  await service.stop()

  const clock = new TestClock()
  clock.advance(Date.now() + DAY - clock.now())
  // Some partitions have failed often by then: those that no client received must be handed out again, not
  // parked.
  const policy = { ...testPolicy, maxAttempts: 1_000_000 }
  const store = await openEmbeddedStore({ folder, policy, clock: clock.now })
  const driver = new Driver({ store, reopen: async () => {}, dispose: async () => {} }, clock)
  expect(await store.audit()).toEqual([])
  await driver.sweep()
  await driver.pass(DAY)
  const rest = await driver.pullAll()
  expect(rest.map(nameOf).toSorted()).toEqual(unfinished.map(([name]) => name).toSorted())
  for (const { lease } of rest) expect(await driver.settle(lease?.id ?? '')).toBeNull()
  for (const taskId of TASKS) {
    const { facts } = await driver.task(taskId)
    expect(facts.partitions.done).toBe(ledger.accepted.filter((name) => name.startsWith(taskId)).length)
    expect(facts.finishedAt).not.toBeNull()
  }
  expect(await store.audit()).toEqual([])
  await store.close()
}, 300_000)

/** Kills at random moments, but never before the load has started again. */
async function killAgainAndAgain({ service, ledger, chance }: Stage): Promise<void> {
  const killer = chance.for('killer')
  for (let kill = 0; kill < KILLS; kill += 1) {
    const enough = ledger.answers + killer.between(20, 219)
    while (ledger.answers < enough) await sleep(1)
    await sleep(killer.below(20))
    await service.killAndRestart()
  }
}

/**
 * Waits until nothing is left, by the counters: listing thousands of partitions each time would take longer
 * than the work.
 */
async function drained(service: MortalService): Promise<void> {
  while (true) {
    const tasks = await Promise.all(TASKS.map((taskId) => service.ask<TaskView>(`/tasks/${taskId}`)))
    if (tasks.every(({ partitions }) => partitions.ready + partitions.delayed === 0)) return
    await sleep(20)
  }
}

interface Page {
  readonly partitions: readonly { readonly partition_name: string; readonly state: string }[]
  readonly next: string | null
}

/** Every partition of every task, as the service shows it. */
async function statesOf(service: MortalService): Promise<Map<string, string>> {
  const states = new Map<string, string>()
  for (const taskId of TASKS) {
    let cursor: string | null = ''
    while (cursor !== null) {
      const query = cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`
      const page: Page = await service.ask(`/tasks/${taskId}/partitions?limit=1000${query}`)
      for (const { partition_name, state } of page.partitions) states.set(partition_name, state)
      cursor = page.next
    }
  }
  return states
}
