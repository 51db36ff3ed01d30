import { readEvents } from '@baton/client'
import type { EventName, StreamEvent } from '@baton/protocol'
import { LONGEST_SILENCE_SECONDS } from '@baton/protocol/core'

/** The service counts as unreachable after this much silence. */
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

/** The event stream was refused. The code says why, if the service itself answered. */
export class StreamRefused extends Error {
  readonly code: string
  /** False if a proxy answered for an unreachable service. */
  readonly isOfService: boolean
  constructor(status: number, code: string) {
    super(`the event stream was refused with ${status} ${code}`)
    this.code = code
    this.isOfService = code !== '' || status < 500
  }
}

/**
 * Reads events until the stream ends, then resolves or rejects. The caller decides whether to reconnect. Uses
 * fetch, because EventSource cannot send a token.
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
  const timer = setTimeout(() => silence.abort(), SILENCE_MILLIS)
  const response = await fetch(url, {
    headers: {
      accept: 'text/event-stream',
      ...(token === null ? {} : { authorization: `Bearer ${token}` }),
      ...(lastId === null ? {} : { 'last-event-id': lastId }),
    },
    cache: 'no-store',
    signal: AbortSignal.any([signal, silence.signal]),
  }).finally(() => clearTimeout(timer))
  if (!response.ok || response.body === null) throw await refusalOf(response)
  onOpen()
  for await (const { id, event } of readEvents(response.body, signal)) {
    // Ignore unknown events of a newer service.
    if (event !== undefined && Object.hasOwn(known, event.name)) onEvent(event, id ?? null)
  }
}

async function refusalOf(response: Response): Promise<StreamRefused> {
  const problem: unknown = await response.json().catch(() => null)
  const code = typeof problem === 'object' && problem !== null && 'code' in problem ? problem.code : ''
  return new StreamRefused(response.status, String(code))
}
