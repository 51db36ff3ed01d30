import { setTimeout as sleep } from 'node:timers/promises'
import { LatencySamples, type LatencySummary } from '../../harness/statistics.ts'
import { callBackBody, newTask } from '../descriptors.ts'
import { HttpConnection } from '../http-connection.ts'
import { callBackRequest, leaseIds, pullRequest, settleRequest } from '../requests.ts'

export interface LittleWorkInput {
  url: string
  pollers: number
  /** Partitions called back, one per second; 0 leaves the pollers idle for `seconds`. */
  partitionsPerSecond: 0 | 1
  seconds: number
}

export interface LittleWorkResult {
  calledBack: number
  handedOff: number
  /** The time from sending the call-back to the worker's receiving its partition. */
  handOff: LatencySummary
}

const WAIT_SECONDS = 20

/** Many more workers than partitions: all of them wait in long polls. */
export async function littleWork(input: LittleWorkInput): Promise<LittleWorkResult> {
  const { url } = input
  const connections = await Promise.all(
    Array.from({ length: input.pollers + 1 }, () => HttpConnection.open(url)),
  )
  const [producer, ...pollers] = connections
  if (!producer) throw new Error('no connections')
  const calledBackAt = new Map<string, number>()
  const samples = new LatencySamples()
  let handedOff = 0
  let over = false
  const poll = (connection: HttpConnection, index: number) => {
    const pull = pullRequest(url, `bench-poller-${index}`, { waitSeconds: WAIT_SECONDS })
    const settle = settleRequest(url, `bench-poller-${index}`)
    const next = () => {
      if (!over) connection.send(pull, onPulled, () => {})
    }
    const onPulled = (_status: number, body: string) => {
      const arrivedAt = performance.now()
      const leases = leaseIds(body)
      if (leases.length === 0) return next()
      const taskId = /"taskId":"([^"]+)"/.exec(body)?.[1] ?? ''
      const sentAt = calledBackAt.get(taskId)
      if (sentAt !== undefined) {
        samples.add(arrivedAt - sentAt)
        handedOff++
      }
      connection.send(settle(leases), next, () => {})
    }
    next()
  }
  pollers.forEach(poll)
  try {
    const seconds = Math.max(1, Math.round(input.seconds))
    for (let second = 0; second < seconds; second++) {
      if (input.partitionsPerSecond === 1) {
        const task = newTask()
        const request = callBackRequest(url, callBackBody(1, task, 1))
        calledBackAt.set(task.id, performance.now())
        const answer = await producer.exchange(request)
        if (answer.status !== 200) throw new Error(`call-back answered ${answer.status}: ${answer.body}`)
      }
      await sleep(1000)
    }
  } finally {
    over = true
    for (const connection of connections) connection.close()
  }
  return { calledBack: calledBackAt.size, handedOff, handOff: samples.summary() }
}
