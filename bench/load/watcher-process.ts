import { connect, type Socket } from 'node:net'
import { answerCalls } from '../harness/helper-process.ts'
import { getRequest } from './requests.ts'

export interface OpenStreamsInput {
  url: string
  streams: number
  /** False: the connections stay open and the client does not read what arrives. */
  reads: boolean
}

let open: Socket[] = []
let bytes = 0

/**
 * Event streams as pages hold them. Events are counted and dropped, since a reader's own work is not
 * measured.
 */
async function openStreams({ url, streams, reads }: OpenStreamsInput): Promise<void> {
  const { hostname, port } = new URL(url)
  bytes = 0
  open = await Promise.all(
    Array.from({ length: streams }, async () => {
      const socket = connect({ host: hostname, port: Number(port) })
      socket.on('error', () => {})
      await new Promise((resolve) => socket.once('connect', resolve))
      socket.write(getRequest(url, '/events'))
      if (reads) {
        socket.on('data', (chunk) => {
          bytes += chunk.length
        })
      }
      return socket
    }),
  )
}

/** Returns how many megabytes arrived. */
function closeStreams(): number {
  for (const socket of open) socket.destroy()
  open = []
  return bytes / 2 ** 20
}

/** A separate process, so that reading events does not slow down the load client. */
const calls = { openStreams, closeStreams }

export type WatcherCalls = typeof calls

answerCalls(calls)
