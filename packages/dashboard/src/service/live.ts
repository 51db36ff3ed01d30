import { effect, signal } from '@preact/signals'
import { baseUrl, token, tokenWanted } from './connection.ts'
import { followEvents, StreamRefused } from './event-stream.ts'
import { followers } from './followers.ts'

/** `asleep`: nobody looks at the tab, so the connection was given up. */
export type LiveState = 'connecting' | 'live' | 'lost' | 'asleep'

const SLOWEST_RETRY_MILLIS = 15_000
/** A hidden tab gives its connection back: browsers grant only a few per host, and the service counts them too. */
const HIDDEN_FOR_MILLIS = 20_000
/** All pages are told to look anew at the same moment; they do not all ask in the same moment. */
const RELOAD_SPREAD_MILLIS = 1500

export const liveState = signal<LiveState>('connecting')

let lastId: string | null = null
let connection: AbortController | undefined
let retry: ReturnType<typeof setTimeout> | undefined
let sleep: ReturnType<typeof setTimeout> | undefined
let reload: ReturnType<typeof setTimeout> | undefined
let failures = 0

/** Keeps one stream open while somebody looks, and passes what it says to those who keep state. */
export function startLive(): void {
  effect(() => {
    // A new token is a new connection.
    token.value
    if (tokenWanted.value === 'no') connect()
    else disconnect()
  })
  document.addEventListener('visibilitychange', () => {
    clearTimeout(sleep)
    if (document.visibilityState === 'hidden') sleep = setTimeout(fallAsleep, HIDDEN_FOR_MILLIS)
    else if (liveState.peek() === 'asleep') connect()
  })
}

function connect(): void {
  disconnect()
  const mine = new AbortController()
  connection = mine
  if (liveState.peek() !== 'lost') liveState.value = 'connecting'
  const resumes = lastId !== null
  followEvents({
    url: new URL('events', baseUrl),
    token: token.peek(),
    lastId,
    signal: mine.signal,
    onOpen: () => {
      failures = 0
      liveState.value = 'live'
      // Only now: what happens between the two is then in the stream. A resumed one is told what it missed.
      if (!resumes) reloadAll()
    },
    onEvent: (event, id) => {
      if (id !== null) lastId = id
      if (event.name === 'reset') reloadSoon()
      else for (const follower of followers) follower.onEvent?.(event)
    },
  })
    .catch((error: unknown) => {
      // The requests of the page itself find out about tokens, and say so better.
      if (error instanceof StreamRefused && (error.status === 401 || error.status === 403)) reloadAll()
    })
    .finally(() => {
      if (connection === mine) retryLater()
    })
}

function disconnect(): void {
  clearTimeout(retry)
  const ending = connection
  connection = undefined
  ending?.abort()
}

function retryLater(): void {
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
  if (reload !== undefined) return
  reload = setTimeout(() => {
    reload = undefined
    reloadAll()
  }, Math.random() * RELOAD_SPREAD_MILLIS)
}
