import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { openPostgresStore } from '../../packages/server/src/store/postgres/open.ts'
import { testPolicy } from '../../packages/server/test/store/conformance/harness.ts'
import { SharedDatabase } from '../../packages/server/test/store/support/shared-database.ts'
import { Load } from './support/load.ts'
import { NodeProcess } from './support/node-process.ts'
import { PostgresServer } from './support/postgres-server.ts'

const LEASE_MILLIS = 1000

let server: PostgresServer
beforeAll(async () => {
  server = await PostgresServer.start()
})
afterAll(() => server.dispose())

async function startNode(name: string, database: SharedDatabase): Promise<NodeProcess> {
  const url = `${server.url(database.name)}?alone=whenever-possible`
  const node = await NodeProcess.start(name, [
    ...['--database-url', url, '--lease-seconds', String(LEASE_MILLIS / 1000)],
    ...['--backoff-seconds', '0.05', '--backoff-max-seconds', '0.2', '--max-attempts', '1000'],
    ...['--log-level', 'warn'],
  ])
  onTestFinished(() => node.kill())
  return node
}

function loadOn(urls: readonly string[]): Load {
  return new Load({
    ...{ urls, taskId: 'orders', arrays: 40, arrayLength: 50, workers: 12 },
    ...{ leaseMillis: LEASE_MILLIS, workMillis: 20, answerMillis: 2000 },
  })
}

async function progress(load: Load, share: number): Promise<void> {
  while (load.doneCount < load.size * share) await sleep(20)
}

/** Whether there is something left to be handed out: nodes are alone for that only. */
const isUnderWay = (load: Load) => load.doneCount < load.size

/** Kills a node that has noted something and could not write it up. */
async function killWithNotes(node: NodeProcess, database: SharedDatabase, load: Load): Promise<void> {
  while (true) {
    const hold = await database.holdWriteUps()
    // If it is not alone at this moment, nobody gets on: pulls wait for the same lock.
    while (isUnderWay(load) && (await database.notes()) === 0 && (await database.isHadAlone()));
    const isTime = !isUnderWay(load) || (await database.notes()) > 0
    if (isTime) await node.kill()
    if (isTime) await database.endSessions()
    await hold.letGo()
    if (isTime) return
    await sleep(20)
  }
}

async function expectAllDone(load: Load, database: SharedDatabase): Promise<void> {
  expect(load.findings()).toEqual([])
  const store = await openPostgresStore({ url: server.url(database.name), policy: testPolicy })
  onTestFinished(() => store.close())
  expect((await store.task('orders'))?.facts.partitions).toMatchObject({
    ...{ done: load.size, ready: 0, held: 0, leased: 0, delayed: 0 },
  })
  expect(await store.audit()).toEqual([])
  expect(await database.notes()).toBe(0)
}

test('a node that is alone is killed again and again, with notes that are not written up', async () => {
  const database = await SharedDatabase.create(server)
  const node = await startNode('north', database)
  const load = loadOn([node.url])
  const loading = load.run()
  loading.catch(() => {})
  for (const share of [0.1, 0.3, 0.5]) {
    await progress(load, share)
    await killWithNotes(node, database, load)
    await node.startUntilItRuns()
  }
  await loading
  await expectAllDone(load, database)
})

/** Stops a node while it is alone. */
async function freezeAlone(node: NodeProcess, database: SharedDatabase, load: Load): Promise<void> {
  while (true) {
    while (isUnderWay(load) && !(await database.isHadAlone()));
    node.signal('SIGSTOP')
    if (!isUnderWay(load) || (await database.isHadAlone())) return
    node.signal('SIGCONT')
  }
}

test('a node that is frozen while it is alone is taken over from, and goes on beside the other', async () => {
  const database = await SharedDatabase.create(server)
  const frozen = await startNode('north', database)
  const urls = [frozen.url]
  const load = loadOn(urls)
  const loading = load.run()
  loading.catch(() => {})
  await progress(load, 0.3)
  await freezeAlone(frozen, database, load)

  const other = await startNode('east', database)
  expect(await database.isHadAlone()).toBe(false)
  // Whoever shares out requests does not send any more to one that does not answer; those that it has it has.
  urls.splice(0, 1, other.url)
  await progress(load, 0.5)
  frozen.signal('SIGCONT')
  urls.push(frozen.url)

  await loading
  for (const { url } of [frozen, other]) expect((await fetch(`${url}/tasks/orders`)).status).toBe(200)
  await expectAllDone(load, database)
})
