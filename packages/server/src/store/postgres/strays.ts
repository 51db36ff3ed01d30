import { lockedOf, placesOf, removeFrom } from './queues.ts'
import { statement } from './statement.ts'

/**
 * A hand-off that is one statement does not see what was queued after it began: a partition that was
 * held and made ready again at that moment leaves the newer of its two places in `ready` behind, and a lease that was
 * renewed at that moment its newer place in `due`. And a claim leaves the place of a partition that was
 * changed under its hands. Claims pass such stray places over, because the row says otherwise. Who left them
 * removes them, and if that node died: whoever changes the partition's state, a pull that found nothing else, the
 * roller when the front of the order gets there, or a sweep when their time has come.
 */
export const dropStrays = statement(
  'drop-strays',
  `WITH changed AS MATERIALIZED (
     SELECT id, lane, state, rank FROM baton.partition WHERE id = ANY($1::bigint[]) ORDER BY id FOR UPDATE
   )
   ${removeFrom('ready', placesOf('ready', 'changed s', "lane = s.lane AND id = s.id AND (s.state <> 'ready' OR s.rank <> rank)", 'FOR UPDATE SKIP LOCKED'))}`,
)
export const dropEnded = statement(
  'drop-ended',
  `WITH changed AS MATERIALIZED (
     SELECT id, due_at FROM baton.partition WHERE id = ANY($1::bigint[]) AND state <> 'leased' ORDER BY id FOR UPDATE
   )
   ${removeFrom('due', placesOf('due', 'changed s', 'NOT delayed AND due_at = s.due_at AND id = s.id'))}`,
)

/** Of the places `q`; those of partitions that were purged since have no row that could be locked. */
const straysAmong = (places: string, isStray: string) =>
  `WITH place AS MATERIALIZED (${places}), stray AS MATERIALIZED (
     SELECT q.lies FROM place q ${lockedOf('id', `(${isStray})`)}
     UNION ALL
     SELECT q.lies FROM place q WHERE (SELECT id FROM baton.partition WHERE id = q.id) IS NULL
   )`
const straysOfReady = (places: string) =>
  `${straysAmong(places, "state <> 'ready' OR rank <> q.rank")} ${removeFrom('ready', 'SELECT lies FROM stray')}`

/** At the front of the order, where every place comes sooner or later. */
export const dropStraysInFront = statement(
  'drop-strays-in-front',
  straysOfReady(
    'SELECT ctid AS lies, rank, id FROM baton.ready ORDER BY level, rank, id LIMIT 1000 FOR UPDATE SKIP LOCKED',
  ),
)
export const dropStraysOfLane = statement(
  'drop-strays-of-lane',
  straysOfReady(
    'SELECT ctid AS lies, rank, id FROM baton.ready WHERE lane = $1 ORDER BY id FOR UPDATE SKIP LOCKED',
  ),
)

/** In nobody's way until their time has come. */
const overdue = (delayed: string) =>
  `(SELECT ctid AS lies, delayed, due_at, id FROM baton.due WHERE ${delayed} AND due_at <= $1 ORDER BY due_at LIMIT 1000)`
export const dropStraysOverdue = statement(
  'drop-strays-overdue',
  `${straysAmong(
    `${overdue('NOT delayed')} UNION ALL ${overdue('delayed')}`,
    "state <> CASE WHEN q.delayed THEN 'delayed' ELSE 'leased' END OR due_at <> q.due_at",
  )}
   ${removeFrom('due', 'SELECT lies FROM stray')}`,
)
