import { setTimeout as sleep } from 'node:timers/promises'
import { LatencySamples, type LatencySummary } from '../../harness/statistics.ts'
import { callBackBody } from '../descriptors.ts'
import { HttpConnection } from '../http-connection.ts'
import { callBackRequest, leaseIds, pullRequest } from '../requests.ts'

/**
 * Long polls that stay open between calls of the harness, which reads the server's processor time while they
 * wait.
 */
interface Waiting {
  connections: HttpConnection[]
  url: string
  answered: { atMs: number; partitions: number }[]
}

let waiting: Waiting | undefined

export interface OpenWaitingPullsInput {
  url: string
  pulls: number
}

const CONNECTING_AT_ONCE = 200
const WAIT_SECONDS = 60

/** Opens the connections in groups (a listen backlog is short) and starts a long poll on each. */
export async function openWaitingPulls({ url, pulls }: OpenWaitingPullsInput): Promise<{ seconds: number }> {
  const startedAt = performance.now()
  const opened: Waiting = { connections: [], url, answered: [] }
  waiting = opened
  while (opened.connections.length < pulls) {
    const missing = Math.min(CONNECTING_AT_ONCE, pulls - opened.connections.length)
    const group = await Promise.all(Array.from({ length: missing }, () => HttpConnection.open(url)))
    opened.connections.push(...group)
  }
  // Connect all of them before the first poll: the common wait of the polls must outlast the measurement.
  opened.connections.forEach((connection, index) => {
    connection.send(
      pullRequest(url, `bench-poller-${index}`, { waitSeconds: WAIT_SECONDS }),
      (_status, body) => opened.answered.push({ atMs: performance.now(), partitions: leaseIds(body).length }),
      () => {},
    )
  })
  return { seconds: (performance.now() - startedAt) / 1000 }
}

export interface WakeInput {
  partitions: number
  /** How long to wait for answers after the call-back. */
  watchSeconds: number
}

export interface WakeResult {
  callBackMs: number
  woken: number
  /** Answers without a partition: pulls that were woken unnecessarily. */
  wokenForNothing: number
  stillWaiting: number
  /** The time from sending the call-back to each answer. */
  wakeUp: LatencySummary
}

export async function wakeWaitingPulls({ partitions, watchSeconds }: WakeInput): Promise<WakeResult> {
  if (!waiting) throw new Error('no pulls are waiting')
  const { url, answered, connections } = waiting
  const producer = await HttpConnection.open(url)
  const request = callBackRequest(url, callBackBody(partitions))
  const answeredBefore = answered.length
  const sentAt = performance.now()
  const { status, body } = await producer.exchange(request)
  const callBackMs = performance.now() - sentAt
  if (status !== 200) throw new Error(`call-back answered ${status}: ${body.slice(0, 500)}`)
  await sleep(watchSeconds * 1000)
  producer.close()
  const samples = new LatencySamples()
  const answers = answered.slice(answeredBefore)
  const woken = answers.filter((answer) => answer.partitions > 0)
  for (const answer of woken) samples.add(answer.atMs - sentAt)
  return {
    callBackMs,
    woken: woken.length,
    wokenForNothing: answers.length - woken.length,
    stillWaiting: connections.length - answered.length,
    wakeUp: samples.summary(),
  }
}

export function closeWaitingPulls(): void {
  for (const connection of waiting?.connections ?? []) connection.close()
  waiting = undefined
}
