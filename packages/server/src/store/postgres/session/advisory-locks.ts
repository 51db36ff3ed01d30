/**
 * The advisory locks of all nodes on a database, numbered here and nowhere else. None may ever change: during an upgrade
 * nodes of two versions share them.
 */

/** Nodes that start together take turns; whoever comes second finds the work done. */
export const MIGRATION_LOCK = 0x6261_7401

/** The class of the locks that keys of pulls are locked by. */
export const KEY_LOCKS = 0x6261_7402

/** Held by whoever folds counters in, opens levels or decides that a task is done: one at a time, on all nodes. */
export const ROLL_LOCK = 0x6261_7403

/**
 * The class of the lock that tells whether a node is alone; see session/presence.ts. A class and a number by itself are never the
 * same lock, so that it is the number of another does no harm.
 */
export const PRESENCE_LOCKS = 0x6261_7403
