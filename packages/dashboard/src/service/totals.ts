import type { Totals } from '@baton/protocol'
import { effect, signal } from '@preact/signals'
import { client, noteRefusal } from './connection.ts'
import { followLive } from './followers.ts'
import { liveState } from './live.ts'
import { unfinishedBeyond } from './tasks.ts'

/** However many pages ask, the service adds up once for all of them. */
const REFRESH_MILLIS = 2000

/**
 * The sums over all unfinished tasks. They are asked for only where the page knows some of these tasks and not all: of
 * what it knows itself, it hears sooner. Null while they were not told.
 */
export const toldTotals = signal<Totals | null>(null)

let reading = false

export function followTotals(): void {
  effect(() => {
    if (unfinishedBeyond.value) void read()
    else toldTotals.value = null
  })
  followLive({ reload: () => void read() })
  setInterval(() => {
    if (document.visibilityState === 'visible' && liveState.peek() === 'live') void read()
  }, REFRESH_MILLIS)
}

async function read(): Promise<void> {
  if (reading || !unfinishedBeyond.peek()) return
  reading = true
  try {
    toldTotals.value = await client.peek().totals()
  } catch (error) {
    // What was told before is still at least nearly right; the mark at the top says whether it is of now.
    noteRefusal(error)
  } finally {
    reading = false
  }
}
