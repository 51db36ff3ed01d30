import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import { Session } from 'node:inspector/promises'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { openApp } from '../../../packages/server/src/app.ts'
import { createLog } from '../../../packages/server/src/run-service.ts'
import { readSettings } from '../../../packages/server/src/settings.ts'
import { root } from './markdown.ts'

// A program. Runs the service in the folder that it is given, and prints the source files of which a function
// runs in every plain pull and in every settle on an open connection.

/** Timers of the service may run in some rounds, and not in all. */
const ROUNDS = 10

// On a busy machine the shortest ones would run in every round.
const startInterval = globalThis.setInterval
globalThis.setInterval = ((run: () => void) => startInterval(run, 2 ** 31 - 1)) as typeof setInterval

const { config } = readSettings(new Map([['data', process.argv[2] ?? '']]), {})
const app = await openApp(config, { log: createLog('silent') })
await app.http.listen({ host: '127.0.0.1', port: 0 })
const { port } = app.http.server.address() as AddressInfo
await app.join(`http://127.0.0.1:${port}`)
const agent = new Agent({ keepAlive: true, maxSockets: 1 })
const session = new Session()
session.connect()

async function send<Answer>(method: string, path: string, body?: object): Promise<Answer> {
  const headers = body === undefined ? {} : { 'content-type': 'application/json' }
  const sent = request({ agent, host: '127.0.0.1', port, method, path, headers })
  sent.end(body && JSON.stringify(body))
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  return (await json(response)) as Answer
}

async function executed(): Promise<Set<string>> {
  const { result } = await session.post('Profiler.takePreciseCoverage')
  const ran = result.filter(({ functions }) => functions.some(({ ranges }) => (ranges[0]?.count ?? 0) > 0))
  const paths = ran.map(({ url }) => (url.startsWith('file:') ? fileURLToPath(url) : url))
  return new Set(
    paths.filter((path) => path.startsWith(`${root}packages/`)).map((path) => path.slice(root.length)),
  )
}

async function executedInEach(act: () => Promise<void>): Promise<string[]> {
  await act()
  await executed()
  let common: string[] | undefined
  for (let round = 0; round < ROUNDS; round += 1) {
    await act()
    const files = await executed()
    common = common?.filter((path) => files.has(path)) ?? [...files]
  }
  return (common ?? []).sort()
}

const partitions = Array.from({ length: 100 }, (_, index) => ({
  taskId: 'a',
  computeTableName: 'db.a',
  partition_name: `a-0-${index}`,
  record_count: 1,
  priorityLevel: 0,
}))
await app.http.inject({ method: 'POST', url: '/call-back', body: partitions })
await session.post('Profiler.enable')
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })

const leases: string[] = []
const pull = await executedInEach(async () => {
  const answer = await send<{ partitions: { lease: { id: string } }[] }>('GET', '/pull')
  leases.push(...answer.partitions.map(({ lease }) => lease.id))
})
const settle = await executedInEach(async () => {
  const { settled } = await send<{ settled: string[] }>('POST', '/settle', [
    { leaseId: leases.pop(), outcome: 'done' },
  ])
  if (settled.length !== 1) throw new Error('the lease was not settled')
})
process.stdout.write(JSON.stringify({ pull, settle }))
agent.destroy()
await app.close()
