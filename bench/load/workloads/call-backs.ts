import { LatencySamples, type LatencySummary } from '../../harness/statistics.ts'
import { callBackBody } from '../descriptors.ts'
import { HttpConnection } from '../http-connection.ts'
import { callBackRequest } from '../requests.ts'

export interface CallBacksInput {
  url: string
  descriptorsPerArray: number
  seconds: number
}

export interface CallBacksResult {
  descriptors: number
  seconds: number
  latency: LatencySummary
  clientCpuSeconds: number
}

/**
 * One producer sends one array after the other. The bodies are built in advance, a few at a time, and the
 * time for that is not counted: building them takes the client longer than some stores need.
 */
export async function callBacks(input: CallBacksInput): Promise<CallBacksResult> {
  const connection = await HttpConnection.open(input.url)
  const atOnce = Math.max(1, Math.floor(100_000 / input.descriptorsPerArray))
  const latencies = new LatencySamples()
  let descriptors = 0
  let measuredMs = 0
  let cpuMicros = 0
  try {
    while (measuredMs < input.seconds * 1000) {
      const requests = Array.from({ length: atOnce }, () =>
        callBackRequest(input.url, callBackBody(input.descriptorsPerArray)),
      )
      const cpuBefore = process.cpuUsage()
      for (const request of requests) {
        const sentAt = performance.now()
        const { status, body } = await connection.exchange(request)
        if (status !== 200) throw new Error(`call-back answered ${status}: ${body.slice(0, 500)}`)
        const took = performance.now() - sentAt
        latencies.add(took)
        measuredMs += took
        descriptors += input.descriptorsPerArray
        if (measuredMs >= input.seconds * 1000) break
      }
      const cpu = process.cpuUsage(cpuBefore)
      cpuMicros += cpu.user + cpu.system
    }
  } finally {
    connection.close()
  }
  return {
    descriptors,
    seconds: measuredMs / 1000,
    latency: latencies.summary(),
    clientCpuSeconds: cpuMicros / 1e6,
  }
}
