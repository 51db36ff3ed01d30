import { type ProblemCode, ProblemError, readEvents } from '@baton/client'
import type { EventName, StreamEvent } from '@baton/protocol'
import { LONGEST_SILENCE_SECONDS } from '@baton/protocol/core'
import { computed, effect, signal } from '@preact/signals'
import { useEffect, useState } from 'preact/hooks'
import {
  baseUrl,
  explained,
  isServiceThere,
  noteRefusal,
  noteRefusalCode,
  token,
  tokenWanted,
} from './connection.ts'
import { stopWatching, watchThroughput } from './throughput.ts'

/** The current time, updated every second, for relative times and live charts. */
export const now = signal(Date.now())

export function startClock(): void {
  setInterval(() => {
    if (document.visibilityState === 'visible') now.value = Date.now()
  }, 1000)
}

interface LiveFollower {
  /** Loads everything again: at the start, and when events may have been missed. */
  readonly reload: () => void
  readonly onEvent?: (event: StreamEvent) => void
}

/** The parts of the page that keep state from events. */
const followers = new Set<LiveFollower>()

/** Returns a function that unsubscribes. */
export function followLive(follower: LiveFollower): () => void {
  followers.add(follower)
  return () => {
    followers.delete(follower)
  }
}

/** The service counts as unreachable after this much silence. */
const SILENCE_MILLIS = LONGEST_SILENCE_SECONDS * 1000

const known: Record<EventName, true> = { task: true, parked: true, instance: true, reset: true }

interface Subscription {
  readonly url: URL
  readonly token: string | null
  readonly lastId: string | null
  readonly signal: AbortSignal
  readonly onOpen: () => void
  readonly onEvent: (event: StreamEvent, id: string | null) => void
}

/** The event stream was refused. The code says why, if the service itself answered. */
class StreamRefused extends Error {
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
async function followEvents({ url, token, lastId, signal, onOpen, onEvent }: Subscription): Promise<void> {
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

/** `asleep`: the tab is hidden, so the connection was closed. `locked`: a token is needed. */
export type LiveState = 'connecting' | 'live' | 'lost' | 'asleep' | 'locked'

const SLOWEST_RETRY_MILLIS = 15_000
/**
 * A hidden tab closes its connection after this time: browsers limit the connections per host, and the
 * service limits them too.
 */
const HIDDEN_FOR_MILLIS = 20_000
/** A reset reaches all pages at the same moment, so each waits a random time before it reloads. */
const RELOAD_SPREAD_MILLIS = 1500
/** How often the page checks whether the service is reachable while it waits for a token. */
const LOOK_EVERY_MILLIS = 3000

export const liveState = signal<LiveState>('connecting')

/** When the service became unreachable, in milliseconds; null while it is reachable. */
export const awaySince = signal<number | null>(null)

export const isAway = computed(() => awaySince.value !== null)

let lastId: string | null = null
let connection: AbortController | undefined
let retry: ReturnType<typeof setTimeout> | undefined
let sleep: ReturnType<typeof setTimeout> | undefined
let reload: ReturnType<typeof setTimeout> | undefined
let failures = 0
/** When the last stream ended, or when the first check without an answer failed. */
let lostAt: number | null = null

/** Keeps one stream open while the tab is visible, and passes its events to the followers. */
export function startLive(): void {
  effect(() => {
    // Reconnect when the token changes.
    token.value
    tokenWanted.value
    wake()
  })
  document.addEventListener('visibilitychange', () => {
    clearTimeout(sleep)
    if (document.visibilityState === 'hidden') sleep = setTimeout(fallAsleep, HIDDEN_FOR_MILLIS)
    else if (liveState.peek() === 'asleep') wake()
  })
}

function wake(): void {
  if (tokenWanted.peek() === 'no') connect()
  else waitForToken()
}

function connect(): void {
  const mine = takeOver()
  if (liveState.peek() !== 'lost') liveState.value = 'connecting'
  const resumes = lastId !== null
  let isOpen = false
  followEvents({
    url: new URL('events', baseUrl),
    token: token.peek(),
    lastId,
    signal: mine.signal,
    onOpen: () => {
      failures = 0
      isOpen = true
      noteReach(true)
      liveState.value = 'live'
      // Load after the stream is open, so that changes during the load arrive as events. A resumed stream
      // sends the missed events, and needs no load.
      if (resumes) watchThroughput()
      else reloadAll()
    },
    onEvent: (event, id) => {
      if (id !== null) lastId = id
      if (event.name === 'reset') reloadSoon()
      else for (const follower of followers) follower.onEvent?.(event)
    },
  })
    .catch((error: unknown) => {
      if (connection !== mine) return
      // A stream may break for many reasons. Only if the next one gets no answer is the service unreachable.
      if (!isOpen) noteReach(error instanceof StreamRefused && error.isOfService)
      // Without the stream, the page still shows what it can poll.
      if (error instanceof StreamRefused && !noteRefusalCode(error.code)) reloadAll()
    })
    .finally(() => {
      if (connection !== mine) return
      lostAt ??= Date.now()
      retryLater()
    })
}

/** Without a token there is no stream. The page still checks whether the service is reachable. */
function waitForToken(): void {
  const mine = takeOver()
  if (liveState.peek() !== 'lost') liveState.value = 'locked'
  const look = async () => {
    const isThere = await isServiceThere(mine.signal)
    if (connection !== mine) return
    noteReach(isThere)
    liveState.value = isThere ? 'locked' : 'lost'
    retry = setTimeout(() => void look(), LOOK_EVERY_MILLIS)
  }
  void look()
}

function noteReach(isThere: boolean): void {
  if (isThere) lostAt = null
  else lostAt ??= Date.now()
  awaySince.value = lostAt
}

function takeOver(): AbortController {
  disconnect()
  connection = new AbortController()
  return connection
}

function disconnect(): void {
  stopWatching()
  clearTimeout(retry)
  const ending = connection
  connection = undefined
  ending?.abort()
}

function retryLater(): void {
  stopWatching()
  liveState.value = 'lost'
  const wait = Math.min(SLOWEST_RETRY_MILLIS, 500 * 2 ** failures) * (0.5 + Math.random())
  failures += 1
  retry = setTimeout(connect, wait)
}

function fallAsleep(): void {
  disconnect()
  liveState.value = 'asleep'
}

function reloadAll(): void {
  for (const follower of followers) follower.reload()
}

function reloadSoon(): void {
  stopWatching()
  if (reload !== undefined) return
  reload = setTimeout(() => {
    reload = undefined
    reloadAll()
  }, Math.random() * RELOAD_SPREAD_MILLIS)
}

/** The loading state of a page's content. */
export type Loaded<Value> =
  | { readonly kind: 'loading' }
  | { readonly kind: 'there'; readonly value: Value }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'failed'; readonly detail: string }

/** `unknown` is the error code for an object that does not exist. */
export async function load<Value>(read: () => Promise<Value>, unknown?: ProblemCode): Promise<Loaded<Value>> {
  try {
    return { kind: 'there', value: await read() }
  } catch (error) {
    noteRefusal(error)
    if (error instanceof ProblemError && error.code === unknown) return { kind: 'unknown' }
    return { kind: 'failed', detail: explained(error) }
  }
}

/** Keeps the previous value if a reload fails. */
export function shownAfter<Value>(before: Loaded<Value>, now: Loaded<Value>): Loaded<Value> {
  return now.kind === 'failed' && before.kind === 'there' ? before : now
}

/** Polls a value while the page is visible, because it does not come as events. */
export function usePolled<Value>(
  read: () => Promise<Loaded<Value>>,
  everyMillis: number,
  of: readonly unknown[] = [],
): { readonly loaded: Loaded<Value>; readonly refresh: () => void } {
  const [refreshes, setRefreshes] = useState(0)
  const [loaded, setLoaded] = useState<Loaded<Value>>({ kind: 'loading' })
  useEffect(() => {
    let isCurrent = true
    const readNow = async () => {
      const outcome = await read()
      if (isCurrent) setLoaded((before) => shownAfter(before, outcome))
    }
    void readNow()
    const reading = setInterval(() => {
      if (document.visibilityState === 'visible') void readNow()
    }, everyMillis)
    const unfollow = followLive({ reload: () => void readNow() })
    return () => {
      isCurrent = false
      clearInterval(reading)
      unfollow()
    }
  }, [...of, refreshes])
  return { loaded, refresh: () => setRefreshes((count) => count + 1) }
}
