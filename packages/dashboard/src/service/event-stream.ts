import type { EventName, StreamEvent } from '@baton/protocol'
import { LONGEST_SILENCE_SECONDS } from '@baton/protocol/core'

/** After that the connection is gone, whatever the browser believes. */
const SILENCE_MILLIS = LONGEST_SILENCE_SECONDS * 1000

const known: Record<EventName, true> = { task: true, parked: true, instance: true, reset: true }

export interface Subscription {
  readonly url: URL
  readonly token: string | null
  readonly lastId: string | null
  readonly signal: AbortSignal
  readonly onOpen: () => void
  readonly onEvent: (event: StreamEvent, id: string | null) => void
}

/** The stream was refused; the code tells why, where it was the service that answered. */
export class StreamRefused extends Error {
  readonly code: string
  /** False for a proxy that answers for a service that is away. */
  readonly isOfService: boolean
  constructor(status: number, code: string) {
    super(`the event stream was refused with ${status} ${code}`)
    this.code = code
    this.isOfService = code !== '' || status < 500
  }
}

/**
 * Follows the events until the stream ends, and then rejects or resolves; the caller decides whether to come back.
 * Read with fetch, because the browser's EventSource cannot send a token.
 */
export async function followEvents({
  url,
  token,
  lastId,
  signal,
  onOpen,
  onEvent,
}: Subscription): Promise<void> {
  const silence = new AbortController()
  let watchdog = setTimeout(() => silence.abort(), SILENCE_MILLIS)
  try {
    const response = await fetch(url, {
      headers: {
        accept: 'text/event-stream',
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
        ...(lastId === null ? {} : { 'last-event-id': lastId }),
      },
      cache: 'no-store',
      signal: AbortSignal.any([signal, silence.signal]),
    })
    if (!response.ok || response.body === null) throw await refusalOf(response)
    onOpen()
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
    let unread = ''
    while (true) {
      const { done, value } = await reader.read()
      if (done) return
      clearTimeout(watchdog)
      watchdog = setTimeout(() => silence.abort(), SILENCE_MILLIS)
      const blocks = (unread + value).split('\n\n')
      unread = blocks.pop() ?? ''
      for (const block of blocks) readBlock(block, onEvent)
    }
  } finally {
    clearTimeout(watchdog)
  }
}

async function refusalOf(response: Response): Promise<StreamRefused> {
  const problem: unknown = await response.json().catch(() => null)
  const code = typeof problem === 'object' && problem !== null && 'code' in problem ? problem.code : ''
  return new StreamRefused(response.status, String(code))
}

function readBlock(block: string, onEvent: Subscription['onEvent']): void {
  let name = ''
  let data = ''
  let id: string | null = null
  for (const line of block.split('\n')) {
    if (line.startsWith('event: ')) name = line.slice(7)
    else if (line.startsWith('data: ')) data = line.slice(6)
    else if (line.startsWith('id: ')) id = line.slice(4)
  }
  // A name from a newer service is passed over; what it says, this page cannot show.
  if (!Object.hasOwn(known, name)) return
  onEvent({ name, data: JSON.parse(data) } as StreamEvent, id)
}
