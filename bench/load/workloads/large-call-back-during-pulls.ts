import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { LatencySamples, type LatencySummary } from '../../harness/statistics.ts'
import { callBackBody } from '../descriptors.ts'
import { HttpConnection } from '../http-connection.ts'
import { callBackRequest, getRequest, leaseIds, pullRequest, settleRequest } from '../requests.ts'

export interface LargeCallBackInput {
  url: string
  descriptors: number
  callBacks: number
  pullers: number
  /** How long all clients are measured before the first array is sent. */
  quietSeconds: number
}

export interface LargeCallBackResult {
  callBackMs: number[]
  /** Answers that need only the server's event loop: their delay is the delay of the event loop. */
  probe: LatencySummary
  /** Pulls and settles, which also wait for the store. */
  handOff: LatencySummary
  /** The same before any large array is sent, for comparison. */
  quietProbe: LatencySummary
  quietHandOff: LatencySummary
  /** The longest delay of this client's own event loop. A longer delay of an answer is the server's. */
  clientLateMs: number
}

/** Sends large arrays on one connection and measures on others how long all other clients wait. */
export async function largeCallBackDuringPulls(input: LargeCallBackInput): Promise<LargeCallBackResult> {
  // Build all bodies first: building one blocks this process for longer than the delays to be measured.
  const requests = Array.from({ length: input.callBacks }, () =>
    callBackRequest(input.url, callBackBody(input.descriptors)),
  )
  const connections = await Promise.all(
    Array.from({ length: input.pullers + 2 }, () => HttpConnection.open(input.url)),
  )
  const [producer, prober, ...pullers] = connections
  if (!producer || !prober) throw new Error('no connections')
  let probes = new LatencySamples()
  let handOffs = new LatencySamples()
  let watching = true
  const probing = probe(prober, input.url, () => (watching ? probes : undefined))
  const pulling = pullers.map((puller, index) =>
    handOff(puller, input.url, `bench-worker-${index}`, () => (watching ? handOffs : undefined)),
  )
  try {
    await sleep(input.quietSeconds * 1000)
    const quiet = { probe: probes.summary(), handOff: handOffs.summary() }
    probes = new LatencySamples()
    handOffs = new LatencySamples()
    const clientDelay = monitorEventLoopDelay({ resolution: 1 })
    clientDelay.enable()
    const callBackMs: number[] = []
    for (const request of requests) {
      const sentAt = performance.now()
      const { status, body } = await producer.exchange(request)
      if (status !== 200) throw new Error(`call-back answered ${status}: ${body.slice(0, 500)}`)
      callBackMs.push(performance.now() - sentAt)
    }
    clientDelay.disable()
    watching = false
    await Promise.all([probing, ...pulling])
    return {
      callBackMs,
      probe: probes.summary(),
      handOff: handOffs.summary(),
      quietProbe: quiet.probe,
      quietHandOff: quiet.handOff,
      clientLateMs: clientDelay.max / 1e6,
    }
  } finally {
    for (const connection of connections) connection.close()
  }
}

/** Sends one probe after the other, a millisecond apart. */
async function probe(
  connection: HttpConnection,
  url: string,
  samples: () => LatencySamples | undefined,
): Promise<void> {
  const request = getRequest(url, '/livez')
  while (samples()) {
    const sentAt = performance.now()
    await connection.exchange(request)
    samples()?.add(performance.now() - sentAt)
    await sleep(1)
  }
}

/** A worker with pauses between its pulls: the pulls measure delays and must not load the machine. */
async function handOff(
  connection: HttpConnection,
  url: string,
  instanceId: string,
  samples: () => LatencySamples | undefined,
): Promise<void> {
  const pull = pullRequest(url, instanceId)
  const settle = settleRequest(url, instanceId)
  while (samples()) {
    const pulledAt = performance.now()
    const { body } = await connection.exchange(pull)
    samples()?.add(performance.now() - pulledAt)
    const leases = leaseIds(body)
    if (leases.length > 0) {
      const settledAt = performance.now()
      await connection.exchange(settle(leases))
      samples()?.add(performance.now() - settledAt)
    }
    await sleep(2)
  }
}
