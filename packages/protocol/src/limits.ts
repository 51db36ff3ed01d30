/** The default name of the table field. */
export const DEFAULT_TABLE_FIELD = 'computeTableName'

// The most entries that an answer lists, so that its size has a bound.

export const MAX_LISTED_LEVELS = 1000
export const MAX_LISTED_GAPS = 10
export const MAX_LISTED_TABLES = 100
export const MAX_LISTED_MISMATCHES = 100
/** The latest attempts of a partition. */
export const MAX_LISTED_ATTEMPTS = 10
/** Partitions that take much longer than others of the same task. */
export const MAX_LISTED_STRAGGLERS = 10
/** Distinct reasons of unsuccessful attempts of a task. */
export const MAX_LISTED_FAILURES = 20
/** The most characters of the key of such a group. */
export const MAX_FAILURE_KEY_LENGTH = 40
/** The most tasks that a producer's record lists. */
export const MAX_PRODUCER_TASKS = 100
/** The most tasks that the view of a table names. */
export const MAX_TABLE_TASKS = 10
/** The last attempts of an instance. */
export const MAX_INSTANCE_ATTEMPTS = 50
/** Pending deliveries of a subscription are counted up to this number. */
export const MAX_COUNTED_DELIVERIES = 10_000
/** Keeps the answer to an invalid body smaller than the body itself. */
export const MAX_LISTED_VIOLATIONS = 100
/** What happened to a task, in one answer. */
export const MAX_FEED_ENTRIES = 200
/** Points of a task's history in one answer. */
export const MAX_THROUGHPUT_POINTS = 2000
/** The most cells of a grid. */
export const MAX_GRID_CELLS = 2000
/** A level with more partitions is sampled for its grid. */
export const GRID_PARTITIONS_COUNTED = 5_000

// How much of a task's history is kept.

/** Each level below this one is counted by itself. This level and all above it are counted as this level. */
export const THROUGHPUT_LEVELS = 16
/** Points of minutes are kept for this long, points of hours as long as the partitions of finished tasks. */
export const MINUTES_KEPT_MILLIS = 86_400_000

// Limits that clients must observe too. This file has no imports, so that the page can use the limits
// without the schemas that check them.

export const MAX_TASK_ID_LENGTH = 1024
export const MAX_TABLE_NAME_LENGTH = 1024
/** Space for the task id, two hyphens, two safe integers, and some leading zeros. */
export const MAX_PARTITION_NAME_LENGTH = MAX_TASK_ID_LENGTH + 64
/** The most priority levels in one array of descriptors. A task may have more, sent in several arrays. */
export const MAX_LEVELS_PER_CALL_BACK = 10_000
/** The maximum size, as JSON, of the kept fields of a descriptor beyond the contract. */
export const MAX_EXTRA_FIELDS_BYTES = 2048
/** The maximum nesting depth of these fields. */
export const MAX_EXTRA_FIELDS_DEPTH = 14
/** The most partitions that one request can pull. */
export const MAX_BATCH = 1000
/** The most tables, and the most tasks, that one pull or one scale request may name. */
export const MAX_CHOSEN = 50
/** The longest target time of a scale request: a week. */
export const MAX_SCALE_TARGET_SECONDS = 604_800
/** The longest time that a pull waits for a partition to become ready. */
export const MAX_WAIT_SECONDS = 60
/** The most leases that one settle or renew request may name. */
export const MAX_LEASES_PER_REQUEST = 10_000
/** A longer reason is truncated when it is stored: a long stack trace must not make a settlement fail. */
export const MAX_KEPT_REASON_LENGTH = 4096
/** The largest checkpoint of a partition, in bytes of UTF-8. */
export const MAX_CHECKPOINT_BYTES = 4096
/** A longer note about the progress of a lease is truncated. */
export const MAX_KEPT_NOTE_LENGTH = 256
/** The longest time by which a settlement can delay the next attempt: a day. */
export const MAX_RETRY_AFTER_SECONDS = 86_400
/** The most partitions that one retry may name. A retry of a level or of the whole task has no limit. */
export const MAX_RETRIED_BY_NAME = 10_000
/** The most entries in one page of a list. */
export const MAX_PAGE_LENGTH = 1000
/** The interval of heartbeats on the event stream. */
export const HEARTBEAT_SECONDS = 15
/**
 * A client that receives nothing for this long treats its connection as lost. Three heartbeats, because a
 * busy service or network may delay one, and reconnecting costs both sides more than waiting for the next.
 */
export const LONGEST_SILENCE_SECONDS = 3 * HEARTBEAT_SECONDS
