import type { StreamEvent } from '@baton/protocol'

export interface LiveFollower {
  /** Loads everything again: at the start, and when events may have been missed. */
  readonly reload: () => void
  readonly onEvent?: (event: StreamEvent) => void
}

/** The parts of the page that keep state from events. */
export const followers = new Set<LiveFollower>()

/** Returns a function that unsubscribes. */
export function followLive(follower: LiveFollower): () => void {
  followers.add(follower)
  return () => {
    followers.delete(follower)
  }
}
