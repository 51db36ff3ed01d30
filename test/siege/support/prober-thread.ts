import { setTimeout as pause } from 'node:timers/promises'
import { parentPort, workerData } from 'node:worker_threads'
import { dial, dialTls, readUntil } from '../../support/hostile-client.ts'

/** Generous: this machine may be busy with the floods themselves. */
const PATIENCE_MILLIS = 30_000

export interface ProbeTarget {
  readonly port: number
  readonly everyMillis: number
  /** The source address of probes. */
  readonly address: string | undefined
  readonly isSecure: boolean
}

/** One probe, as reported to the thread's parent. */
export interface Probe {
  readonly millis: number
  /** The answer, if it was not 200. */
  readonly fault?: string
}

const { port, everyMillis, address, isSecure } = workerData as ProbeTarget
let isStopped = false
parentPort?.once('message', () => {
  isStopped = true
})

while (!isStopped) {
  parentPort?.postMessage(await probe())
  await pause(everyMillis)
}

/** Sends a probe over a new connection. */
async function probe(): Promise<Probe> {
  const began = performance.now()
  const socket = await (isSecure ? dialTls : dial)(port, address)
  const timer = setTimeout(() => socket.destroy(), PATIENCE_MILLIS)
  socket.write('GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
  const text = await readUntil(socket, (seen) => seen.includes('\r\n\r\n'))
  clearTimeout(timer)
  socket.destroy()
  const millis = performance.now() - began
  return text.startsWith('HTTP/1.1 200') ? { millis } : { millis, fault: JSON.stringify(text) }
}
