import { statement } from '../session/statement.ts'
import { placesOf, removeFrom, WAITS } from './places.ts'

/**
 * A hand-off that is one statement does not see what was queued after it began: a partition that was
 * held and made ready again at that moment leaves the newer of its two places in `ready` behind. And a claim leaves the place of a partition that was
 * changed under its hands. Claims pass such stray places over, because the row says otherwise. Who left them
 * removes them, and if that node died: whoever changes the partition's state, a pull that found nothing else, the
 * roller when the front of the order gets there, or a sweep when their time has come.
 */
export const dropStrays = statement(
  'drop-strays',
  `WITH changed AS MATERIALIZED (
     SELECT id, lane, state, stay FROM baton.partition WHERE id = ANY($1::bigint[]) ORDER BY id FOR UPDATE
   )
   ${removeFrom('ready', placesOf('ready', 'changed s', "lane = s.lane AND id = s.id AND (s.state <> 'held' OR s.stay <> stay)", 'FOR UPDATE SKIP LOCKED'))}`,
)
/**
 * What is no stray is not locked, not even for a moment: a claim would pass it over and hand out what comes after. Nor is
 * any row: a place is of one stay, which never comes again, so a stray place is one for good.
 */
const straysAmong = (places: string) =>
  `WITH stray AS MATERIALIZED (
     SELECT q.lies FROM (${places}) q WHERE (SELECT id FROM baton.partition WHERE id = q.id AND ${WAITS}) IS NULL
   )
   ${removeFrom('ready', 'SELECT ctid FROM baton.ready WHERE ctid = ANY (ARRAY(SELECT lies FROM stray)) FOR UPDATE SKIP LOCKED')}`

/** At the front of the order, where every place comes sooner or later. */
export const dropStraysInFront = statement(
  'drop-strays-in-front',
  straysAmong('SELECT ctid AS lies, stay, id FROM baton.ready ORDER BY level, rank, id LIMIT 1000'),
)
export const dropStraysOfLanes = statement(
  'drop-strays-of-lanes',
  straysAmong(
    `SELECT r.* FROM unnest($1::bigint[]) AS l (lane)
     CROSS JOIN LATERAL (SELECT ctid AS lies, stay, id FROM baton.ready WHERE lane = l.lane OFFSET 0) r`,
  ),
)

/** In nobody's way until their time has come. What became of a partition since then is never undone, so no row is locked. */
const overdue = (delayed: string, state: string) =>
  `SELECT place FROM (
     SELECT ctid AS place, number, ids FROM baton.due WHERE ${delayed} AND due_at <= $1 ORDER BY due_at LIMIT 1000
   ) d WHERE NOT EXISTS (
     SELECT FROM unnest(d.ids) AS a (id)
     CROSS JOIN LATERAL (SELECT id FROM baton.partition WHERE id = a.id AND due_with = d.number AND state = '${state}' OFFSET 0) p
   )`
export const dropStraysOverdue = statement(
  'drop-strays-overdue',
  removeFrom('due', `${overdue('NOT delayed', 'leased')} UNION ALL ${overdue('delayed', 'delayed')}`),
)
