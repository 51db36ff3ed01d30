import { Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { bearer, tokenNamed, tokensFile } from '../../../../test/support/tokens-file.ts'
import { until } from '../../../../test/support/until.ts'
import { ReadScheduler } from '../../src/http/requests/read-scheduler.ts'
import { listening, RawConnection } from '../support/raw-connection.ts'
import { descriptors, TestApp } from '../support/test-app.ts'

const tokens = [
  { name: 'loader', token: tokenNamed('p'), roles: ['producer'] },
  { name: 'greedy', token: tokenNamed('g'), roles: ['viewer'] },
  { name: 'patient', token: tokenNamed('v'), roles: ['viewer'] },
]

/** A service whose reads of partitions stop in front of the store until they are let in. */
async function heldService() {
  const baton = await TestApp.open({ tokensFile: await tokensFile({ tokens }) })
  await baton.post('/call-back', descriptors('orders', 600), bearer(tokenNamed('p')))
  const { handOff, http } = baton.app
  const reads = { begun: 0, running: 0, most: 0, received: 0 }
  const held: (() => void)[] = []
  let isHeld = true
  const read = handOff.views.partitions
  handOff.views.partitions = async (query) => {
    reads.begun += 1
    reads.running += 1
    reads.most = Math.max(reads.most, reads.running)
    if (isHeld) await new Promise<void>((resolve) => held.push(resolve))
    return read(query).finally(() => {
      reads.running -= 1
    })
  }
  http.server.on('request', () => {
    reads.received += 1
  })
  const letIn = () => {
    isHeld = false
    for (const go of held) go()
  }
  const port = await listening(baton.app)
  const ask = async (path: string, token: string) => {
    const client = await RawConnection.open(port)
    client.send(
      `GET ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${tokenNamed(token)}\r\n\r\n`,
    )
    return client
  }
  const connections = () =>
    new Promise<number>((resolve) => http.server.getConnections((_, count) => resolve(count)))
  return { reads, letIn, ask, connections }
}

const VIEWERS = 40

test.each(['/tasks/orders/manifest', '/tasks/orders/partitions?limit=1000'])(
  'of many requests for %s, a few run at a time, another caller has its turn, and none runs for a client that has gone',
  async (path) => {
    const { reads, letIn, ask, connections } = await heldService()
    const greedy = await Promise.all(Array.from({ length: VIEWERS }, () => ask(path, 'g')))
    await until(() => reads.received === VIEWERS && reads.begun > 0)
    const patient = await ask('/tasks/orders/partitions?limit=1', 'v')
    await until(() => reads.received === VIEWERS + 1)
    await until(() => reads.begun >= 3)
    expect(reads.begun).toBe(3)
    for (const { socket } of greedy) socket.destroy()
    // The two whose reads run may have closed their side only, and are answered.
    await until(async () => (await connections()) === 3)
    letIn()
    expect((await patient.answer()).status).toBe(200)
    // A later read of the same caller is behind all that are still to run.
    const last = await ask('/tasks/orders/partitions?limit=1', 'g')
    expect((await last.answer()).status).toBe(200)
    expect(reads.most).toBe(3)
    // The two manifests under way have three pages each.
    expect(reads.begun).toBeLessThanOrEqual(8)
  },
)

/** Each iteration of the event loop has other work of 2 ms, and each read takes 10 ms of it. */
test('reads leave most of the time of the event loop to other work, however many there are', async () => {
  let [now, ofOthers] = [0, 0]
  const otherWork = () => {
    now += 2
    ofOthers += 2
    iteration = setImmediate(otherWork)
  }
  let iteration = setImmediate(otherWork)
  onTestFinished(() => clearImmediate(iteration))
  const reads = new ReadScheduler(() => now)
  let [running, ofReads] = [0, 0]
  const read = async () => {
    running += 1
    expect(running).toBeLessThanOrEqual(8)
    now += 10
    ofReads += 10
    await Promise.resolve()
    running -= 1
  }
  const client = async (name: string) => {
    for (let times = 0; times < 10; times += 1) await reads.run(name, new Socket(), read)
  }
  await Promise.all(Array.from({ length: 30 }, (_, at) => client(`viewer ${at % 10}`)))
  expect(ofReads).toBe(3000)
  expect(ofOthers).toBeGreaterThan(1.5 * ofReads)
})
