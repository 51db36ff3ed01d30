import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { SharedDatabase } from '../../packages/server/test/store/support/shared-database.ts'
import type { Load } from './support/load.ts'
import type { NodeProcess } from './support/node-process.ts'
import { PostgresServer } from './support/postgres-server.ts'
import { expectAllDone, loadOn, startNode } from './support/scene.ts'

const LEASE_MILLIS = 1000

let server: PostgresServer
beforeAll(async () => {
  server = await PostgresServer.start()
})
afterAll(() => server.dispose())

async function startAlone(name: string, database: SharedDatabase): Promise<NodeProcess> {
  const node = await startNode(name, `${server.url(database.name)}?alone=whenever-possible`, LEASE_MILLIS)
  onTestFinished(() => node.kill())
  return node
}

const impatientLoadOn = (urls: readonly string[]) =>
  loadOn({ urls, leaseMillis: LEASE_MILLIS, answerMillis: 2000 })

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

async function expectAllWrittenUp(load: Load, database: SharedDatabase): Promise<void> {
  await expectAllDone(load, server.url(database.name))
  expect(await database.notes()).toBe(0)
}

test('a node that is alone is killed again and again, with notes that are not written up', async () => {
  const database = await SharedDatabase.create(server)
  const node = await startAlone('north', database)
  const load = impatientLoadOn([node.url])
  const loading = load.run()
  loading.catch(() => {})
  for (const share of [0.1, 0.3, 0.5]) {
    await load.reached(share)
    await killWithNotes(node, database, load)
    await node.startUntilItRuns()
  }
  await loading
  await expectAllWrittenUp(load, database)
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
  const frozen = await startAlone('north', database)
  const urls = [frozen.url]
  const load = impatientLoadOn(urls)
  const loading = load.run()
  loading.catch(() => {})
  await load.reached(0.3)
  await freezeAlone(frozen, database, load)

  const other = await startAlone('east', database)
  expect(await database.isHadAlone()).toBe(false)
  // Whoever shares out requests does not send any more to one that does not answer; those that it has it has.
  urls.splice(0, 1, other.url)
  await load.reached(0.5)
  frozen.signal('SIGCONT')
  urls.push(frozen.url)

  await loading
  for (const { url } of [frozen, other]) expect((await fetch(`${url}/tasks/orders`)).status).toBe(200)
  await expectAllWrittenUp(load, database)
})
