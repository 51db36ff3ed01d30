import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { type Bench, type Scenario, startLoad } from '../harness/bench.ts'
import { temporaryFolder } from '../harness/clean-up.ts'
import { startPostgres } from '../harness/postgres.ts'
import { type Service, startBaton } from '../harness/services.ts'
import type { Figure } from '../report/model.ts'

const NODES = 3
const CLIENTS = 12
/** More than is handed out between two faults. */
const BACKLOG_PER_FAULT = 10_000
const BACKLOG = 100_000
/** How long all clients work before the next fault. */
const WORK_MILLIS = 1500

interface Pulled {
  readonly partitions: readonly { readonly lease: { readonly id: string } | null }[]
}

/** Clients that pull and settle on any node that answers, and record when a pull was last answered. */
class Fleet {
  readonly urls: string[]
  #isStopped = false
  /** Of pulls that were answered with 200: when they were sent and answered. */
  onPulled: (sentAt: number) => void = () => undefined

  constructor(urls: string[]) {
    this.urls = urls
  }

  async run(): Promise<void> {
    await Promise.all(Array.from({ length: CLIENTS }, (_, client) => this.#work(client)))
  }

  stop(): void {
    this.#isStopped = true
  }

  async #work(client: number): Promise<void> {
    for (let turn = client; !this.#isStopped; turn += 1) {
      const url = this.urls[turn % this.urls.length] ?? ''
      try {
        const sentAt = performance.now()
        const response = await fetch(`${url}/pull`, { signal: AbortSignal.timeout(10_000) })
        const body = (await response.json()) as Pulled
        if (response.status !== 200) continue
        this.onPulled(sentAt)
        const settlements = body.partitions.map(({ lease }) => ({ leaseId: lease?.id, outcome: 'done' }))
        const headers = { 'content-type': 'application/json' }
        const settle = { method: 'POST', headers, body: JSON.stringify(settlements) }
        await (await fetch(`${url}/settle`, settle)).text()
      } catch {
        await sleep(20)
      }
    }
  }
}

async function run(bench: Bench) {
  const { sizes, progress, cleanUp } = bench
  const postgres = await startPostgres(cleanUp)
  const databaseUrl = await postgres.createDatabase('fail_over')
  const start = () => startBaton({ dataFolder: temporaryFolder('data', cleanUp), databaseUrl }, cleanUp)
  const nodes: Service[] = []
  while (nodes.length < NODES) nodes.push(await start())
  const partitions = Math.min(BACKLOG, BACKLOG_PER_FAULT * (sizes.kills + sizes.freezes))
  await startLoad(bench).call('fill', { url: nodes[0]?.url ?? '', partitions })
  const database = new pg.Client({ connectionString: databaseUrl })
  await database.connect()
  cleanUp.add(() => database.end())
  const leaderAt = async () => {
    const { rows } = await database.query('SELECT leader_url FROM baton.head')
    return nodes.findIndex(({ url }) => url === rows[0]?.leader_url)
  }
  const fleet = new Fleet(nodes.map(({ url }) => url))
  const working = fleet.run()
  cleanUp.add(() => fleet.stop())

  /** The time from the fault to the answer of a pull that was sent after it. */
  const afterFault = async (fault: (leader: Service) => void, mend: (at: number) => Promise<void>) => {
    await sleep(WORK_MILLIS)
    let at = await leaderAt()
    while (at === -1) at = await leaderAt()
    const leader = nodes[at] as Service
    fleet.urls.splice(0, NODES, ...nodes.filter((node) => node !== leader).map(({ url }) => url))
    await sleep(100)
    const answered = Promise.withResolvers<number>()
    fault(leader)
    const faultAt = performance.now()
    fleet.onPulled = (sentAt) => {
      if (sentAt > faultAt) answered.resolve(performance.now() - faultAt)
    }
    const took = await answered.promise
    await mend(at)
    fleet.urls.splice(0, NODES, ...nodes.map(({ url }) => url))
    return took
  }
  const killed: Figure = { label: 'leader killed', unit: 'ms', values: [], goal: { atMost: 500 } }
  const longest: Figure = {
    label: 'leader killed, the longest',
    unit: 'ms',
    values: [],
    goal: { atMost: 2000 },
  }
  for (let kill = 1; kill <= sizes.kills; kill += 1) {
    const took = await afterFault(
      ({ pid }) => process.kill(pid, 'SIGKILL'),
      async (at) => {
        nodes[at] = await start()
      },
    )
    killed.values.push(took)
    progress.say(`kill ${kill}/${sizes.kills}: ${took.toFixed(0)} ms`)
  }
  longest.values.push(Math.max(...killed.values))
  const frozen: Figure = { label: 'leader frozen', unit: 'ms', values: [], goal: { atMost: 8000 } }
  for (let freeze = 1; freeze <= sizes.freezes; freeze += 1) {
    const took = await afterFault(
      ({ pid }) => process.kill(pid, 'SIGSTOP'),
      async (at) => void process.kill(nodes[at]?.pid ?? 0, 'SIGCONT'),
    )
    frozen.values.push(took)
    progress.say(`freeze ${freeze}/${sizes.freezes}: ${took.toFixed(0)} ms`)
  }
  fleet.stop()
  await working
  return {
    rows: [],
    figures: [killed, longest, ...(frozen.values.length > 0 ? [frozen] : [])],
    notes: [
      `${NODES} nodes, ${CLIENTS} clients that pull and settle one by one; from the fault to the first answer of a pull that was sent after it, on the other nodes.`,
    ],
  }
}

export const failOver: Scenario = {
  name: 'fail-over',
  title: 'The node that leads is killed, or frozen, under load',
  run,
}
