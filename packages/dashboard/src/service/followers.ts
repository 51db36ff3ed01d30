import type { StreamEvent } from '@baton/protocol'

export interface LiveFollower {
  /** Look at everything anew: at the beginning, and when something may have been missed. */
  readonly reload: () => void
  readonly onEvent?: (event: StreamEvent) => void
}

/** Whoever keeps a part of the page's state. */
export const followers = new Set<LiveFollower>()

/** Returns how to stop. */
export function followLive(follower: LiveFollower): () => void {
  followers.add(follower)
  return () => {
    followers.delete(follower)
  }
}
