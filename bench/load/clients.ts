import { LatencySamples, type LatencySummary } from '../harness/statistics.ts'
import { HttpConnection } from './http-connection.ts'
import { nothingRefused } from './requests.ts'

/** The result of every workload that hands partitions off. */
export interface HandOffResult {
  /** Partitions pulled and settled. */
  partitions: number
  seconds: number
  /** The time from writing a request to receiving its whole answer, over all requests. */
  latency: LatencySummary
  clientCpuSeconds: number
  /** The backlog was empty before the time was over; `seconds` then ends with the last partition. */
  ranDry: boolean
}

/** One client's view of a running measurement. */
interface Client {
  url: string
  instanceId: string
  /** Sends a request, times the answer, and throws unless its status is 200. */
  request(request: string | Buffer, onAnswer: (body: string) => void): void
  /** True until the measurement's time is over or the backlog is empty. */
  goOn(): boolean
  /** Counts the partitions that a settle's answer confirms. A refused lease ends the measurement. */
  settled(partitions: number, answer: string): void
  /** A pull returned nothing: every client stops at its next step. */
  dry(): void
  /** This client has finished; the measurement ends with the last one. */
  finish(): void
}

export interface ClientsInput {
  /** Clients are distributed evenly over the nodes of a service. */
  urls: readonly [string, ...string[]]
  clients: number
  seconds: number
}

/** Opens the connections, starts every client's loop, and counts until the last one has finished. */
export async function runClients(
  { urls, clients, seconds }: ClientsInput,
  start: (client: Client) => void,
): Promise<HandOffResult> {
  const urlOf = (client: number) => urls[client % urls.length] ?? urls[0]
  const connections = await Promise.all(
    Array.from({ length: clients }, (_, client) => HttpConnection.open(urlOf(client))),
  )
  const latencies = new LatencySamples()
  let partitions = 0
  let ranDry = false
  let running = clients
  const cpuBefore = process.cpuUsage()
  const startedAt = performance.now()
  const deadline = startedAt + seconds * 1000
  let endedAt = startedAt
  try {
    await new Promise<void>((resolve, reject) => {
      connections.forEach((connection, index) => {
        start({
          url: urlOf(index),
          instanceId: `bench-worker-${index}`,
          request(request, onAnswer) {
            const sentAt = performance.now()
            connection.send(
              request,
              (status, body) => {
                latencies.add(performance.now() - sentAt)
                if (status === 200) onAnswer(body)
                else reject(new Error(`answered ${status}: ${body.slice(0, 500)}`))
              },
              reject,
            )
          },
          goOn: () => !ranDry && performance.now() < deadline,
          settled(count, answer) {
            if (!nothingRefused(answer)) reject(new Error(`a lease was refused: ${answer.slice(0, 500)}`))
            partitions += count
            endedAt = performance.now()
          },
          dry() {
            ranDry = true
          },
          finish() {
            if (--running === 0) resolve()
          },
        })
      })
    })
  } finally {
    for (const connection of connections) connection.close()
  }
  const cpu = process.cpuUsage(cpuBefore)
  return {
    partitions,
    seconds: (endedAt - startedAt) / 1000,
    latency: latencies.summary(),
    clientCpuSeconds: (cpu.user + cpu.system) / 1e6,
    ranDry,
  }
}
