/** The table field's name unless a deployment says otherwise. */
export const DEFAULT_TABLE_FIELD = 'computeTableName'

// What an answer lists at most, so that none grows with what it tells of.

export const MAX_LISTED_LEVELS = 1000
export const MAX_LISTED_GAPS = 10
export const MAX_LISTED_TABLES = 100
export const MAX_LISTED_MISMATCHES = 100
/** The latest attempts of a partition. */
export const MAX_LISTED_ATTEMPTS = 10
/** Partitions that take much longer than others of their task. */
export const MAX_LISTED_STRAGGLERS = 10
/** Reasons for which attempts of a task came to nothing. */
export const MAX_LISTED_FAILURES = 20
/** The most tasks that a producer's record lists. */
export const MAX_PRODUCER_TASKS = 100
/** Pending deliveries of a subscription are counted up to here. */
export const MAX_COUNTED_DELIVERIES = 10_000
/** A body with everything wrong must not be answered with something larger than itself. */
export const MAX_LISTED_VIOLATIONS = 100

// What senders must keep to as well. Apart from the schemas and without imports: a page that keeps to a limit need not
// load what checks it.

export const MAX_TASK_ID_LENGTH = 1024
export const MAX_TABLE_NAME_LENGTH = 1024
/** Room for the task id, two hyphens, two safe integers, and some leading zeros. */
export const MAX_PARTITION_NAME_LENGTH = MAX_TASK_ID_LENGTH + 64
/** The most priority levels that one array of descriptors may have. A task may have more, in several arrays. */
export const MAX_LEVELS_PER_CALL_BACK = 10_000
/** The most bytes that the fields of a descriptor beyond the contract may take as JSON, where they are kept. */
export const MAX_EXTRA_FIELDS_BYTES = 2048
/** How deep they may be nested. */
export const MAX_EXTRA_FIELDS_DEPTH = 14
/** The most partitions that one request can be handed. */
export const MAX_BATCH = 1000
/** The most tables, and the most tasks, that one pull, or one question about workers, may name. */
export const MAX_CHOSEN = 50
/** The longest time within which a backlog can be asked to be finished: a week. */
export const MAX_SCALE_TARGET_SECONDS = 604_800
/** The longest that a pull waits for something to become ready. */
export const MAX_WAIT_SECONDS = 60
/** The most leases that one settle or renew request may name. */
export const MAX_LEASES_PER_REQUEST = 10_000
/** A reason beyond this is cut when it is kept: a stack trace must not cost a worker its settlement. */
export const MAX_KEPT_REASON_LENGTH = 4096
/** The longest that a settlement can put the next attempt off: a day. */
export const MAX_RETRY_AFTER_SECONDS = 86_400
/** The most partitions that one retry may name; a level or the whole task has no such bound. */
export const MAX_RETRIED_BY_NAME = 10_000
/** The most entries in one page of a list. */
export const MAX_PAGE_LENGTH = 1000
/** How often the stream of events shows that its connection lives. */
export const HEARTBEAT_SECONDS = 15
/**
 * A follower that hears nothing for so long has lost its connection. Three beats: a busy service or network may hold
 * one up, and coming back costs both sides more than waiting for the next.
 */
export const LONGEST_SILENCE_SECONDS = 3 * HEARTBEAT_SECONDS
