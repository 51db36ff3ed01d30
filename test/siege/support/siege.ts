import { setTimeout as pause } from 'node:timers/promises'
import { Chance } from '../../chaos/support/chance.ts'
import { Besieged, type Footprint, type StoreName } from './besieged.ts'
import { floods, prepareFloods } from './floods.ts'
import type { Sample } from './footprints.ts'
import { Honest, Ledger } from './honest.ts'
import { Prober } from './prober.ts'

export interface SiegeOptions {
  readonly store: StoreName
  readonly seconds: number
  readonly seed: number
  readonly tell?: (text: string) => void
}

export interface SiegeOutcome {
  readonly findings: readonly string[]
  readonly before: Footprint
  readonly peakResidentMb: number
  readonly samples: readonly Sample[]
  readonly after: Footprint
  readonly probes: ReturnType<Prober['summary']>
  readonly honest: {
    readonly done: number
    readonly requests: number
    readonly refused: Record<string, number>
  }
  readonly floods: Readonly<Record<string, number>>
  readonly boundsMet: Readonly<Record<string, number>>
}

const PRODUCERS = 2
const WORKERS = 6
const ATTACKERS = 6
/** The connections of honest clients, which open and close. */
const OWN_CONNECTIONS = 24
/**
 * How long to run before the floods, to measure the process under normal load: until caches are filled, or
 * shorter if the siege is short.
 */
const WARM_UP_SECONDS = 30
const warmUpSeconds = (siegeSeconds: number) => Math.min(WARM_UP_SECONDS, Math.max(2, siegeSeconds / 20))
/**
 * Not all freed memory is returned: the system's allocator keeps some. Leaked bodies and answers would exceed
 * this within a minute.
 */
const KEPT_MB = 250

/** Floods of all kinds, together with producers and workers that follow the protocol. */
export async function besiege({
  store,
  seconds,
  seed,
  tell = () => {},
}: SiegeOptions): Promise<SiegeOutcome> {
  prepareFloods()
  const besieged = await Besieged.start(store)
  const prober = new Prober(besieged.port)
  const giveUp = () => void besieged.dispose().finally(() => process.exit(130))
  process.once('SIGINT', giveUp).once('SIGTERM', giveUp)
  try {
    const chance = new Chance(seed)
    const ledger = new Ledger()
    const honest = new Honest(besieged.url, ledger)
    const producing = Array.from({ length: PRODUCERS }, (_, at) =>
      honest.produce(`p${at}`, chance.for(`p${at}`)),
    )
    const working = Array.from({ length: WORKERS }, (_, at) => honest.work(`w${at}`))
    const probing = prober.run()
    await pause(warmUpSeconds(seconds) * 1000)
    const before = await besieged.footprint()
    tell(`before: ${JSON.stringify(before)}`)
    const counts: Record<string, number> = {}
    let peakResidentMb = before.residentMb
    const samples: Sample[] = []
    const began = performance.now()
    const over = AbortSignal.timeout(seconds * 1000)
    const watching = (async () => {
      while (!over.aborted) {
        await pause(1000)
        const now = await besieged.footprint().catch(() => undefined)
        if (now === undefined) continue
        samples.push({ second: Math.round((performance.now() - began) / 1000), ...now })
        peakResidentMb = Math.max(peakResidentMb, now.residentMb)
        tell(`${ledger.done.size} done, ${JSON.stringify(now)}`)
      }
    })()
    const attacking = Array.from({ length: ATTACKERS }, (_, at) =>
      attack(at, chance.for(`a${at}`), over, counts),
    )
    async function attack(at: number, own: Chance, until: AbortSignal, launched: Record<string, number>) {
      const kinds = Object.keys(floods)
      // Each kind once, however short the siege, and then random ones.
      const first = kinds.filter((_, place) => place % ATTACKERS === at)
      while (!until.aborted || first.length > 0) {
        const kind = first.shift() ?? own.pick(kinds)
        launched[kind] = (launched[kind] ?? 0) + 1
        const target = { port: besieged.port, address: `127.0.0.${2 + (at % 3)}`, chance: own, over: until }
        await floods[kind]?.(target)
      }
    }
    await Promise.all([...attacking, watching])
    honest.stopProducing()
    await Promise.all(producing)
    tell('the floods are over; what was called back is finished')
    while (ledger.open > 0 && (await isOpen(besieged))) await pause(100)
    honest.stopWorking()
    await Promise.all(working)
    prober.stop()
    await probing
    const after = await calmed(besieged, before)
    const findings = [
      ...ledger.findings,
      ...prober.findings,
      ...leftovers(before, after),
      ...kept(before, after),
      ...missing(ledger),
      ...besieged.node.errors.map((error) => `logged: ${JSON.stringify(error)}`),
      ...(besieged.node.ends > 0 ? ['the process ended'] : []),
    ]
    return {
      findings,
      before,
      peakResidentMb,
      samples,
      after,
      probes: prober.summary(),
      honest: { done: ledger.done.size, requests: ledger.requests, refused: ledger.refused },
      floods: counts,
      boundsMet: await besieged.boundsMet(),
    }
  } finally {
    process.off('SIGINT', giveUp).off('SIGTERM', giveUp)
    prober.stop()
    await besieged.dispose()
  }
}

/**
 * Whether any work is left. A partition that an attacker settled is done, although no worker of ours did it.
 */
async function isOpen({ url }: Besieged): Promise<boolean> {
  // Not /totals, whose numbers may be some seconds old.
  for (const state of ['open', 'stalled']) {
    const answer = await fetch(`${url}/tasks?state=${state}&limit=1`)
    if (answer.status !== 200) return true
    const { tasks } = (await answer.json()) as { tasks: readonly unknown[] }
    if (tasks.length > 0) return true
  }
  return false
}

/**
 * Connections of the floods close by themselves, the last of them when the service gives up sending their
 * answers. Those of honest clients close when they have been idle for as long as the service allows.
 */
async function calmed(besieged: Besieged, before: Footprint): Promise<Footprint> {
  let now = await besieged.footprint()
  for (let looks = 0; looks < 400 && leftovers(before, now).length > 0; looks += 1) {
    await pause(200)
    now = await besieged.footprint()
  }
  // Memory alone is read afterwards: the inspector has its own handles.
  await besieged.collectGarbage()
  const { residentMb, heapMb } = await besieged.footprint()
  return { ...now, residentMb, heapMb }
}

function leftovers(before: Footprint, after: Footprint): string[] {
  const most: Partial<Footprint> = {
    waitingPulls: 0,
    receivedBytes: 0,
    streams: 0,
    connections: before.connections + OWN_CONNECTIONS,
    timers: before.timers + OWN_CONNECTIONS,
    ...(before.handles === null ? {} : { handles: before.handles + OWN_CONNECTIONS }),
  }
  return exceeding(before, after, most)
}

/** Read when everything else is over, after a garbage collection. */
const kept = (before: Footprint, after: Footprint): string[] =>
  exceeding(before, after, { residentMb: before.residentMb + KEPT_MB })

function exceeding(before: Footprint, after: Footprint, most: Partial<Footprint>): string[] {
  return (Object.keys(most) as (keyof Footprint)[])
    .filter((name) => (after[name] ?? 0) > (most[name] ?? 0))
    .map((name) => `${name} is ${after[name]} after the siege, before it was ${before[name]}`)
}

function missing({ calledBack, done }: Ledger): string[] {
  const lost = [...calledBack].filter((name) => !done.has(name))
  return lost.length === 0 ? [] : [`${lost.length} partitions were never done, ${lost[0]} among them`]
}
