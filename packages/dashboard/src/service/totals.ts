import type { Totals } from '@baton/protocol'
import { effect, signal } from '@preact/signals'
import { client, noteRefusal } from './connection.ts'
import { followLive } from './followers.ts'
import { liveState } from './live.ts'
import { unfinishedBeyond } from './tasks.ts'

/** The service caches the sums for all clients, so this interval may be short. */
const REFRESH_MILLIS = 2000

/**
 * The service's sums over all unfinished tasks. Requested only if the page has not loaded all of these tasks,
 * because the sums of loaded tasks are more recent. Null if not requested or not received yet.
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
    // The previous sums are still approximately right. The header shows whether the page is up to date.
    noteRefusal(error)
  } finally {
    reading = false
  }
}
