/**
 * In SQL: what goes with the row `p` in an array beside an array of ids, which are sorted and distinct. Found
 * by halving. A statement that changes partitions names them by `id = ANY (ids)` and looks the rest up in this way:
 * joined with an unnested array it would be the planner's choice where to begin, and after a vacuum of a table that was
 * empty at that moment it begins with the table, and keeps that plan while the table grows.
 */
export const besideId = (elements: string, ids = '$1::bigint[]') =>
  `(${elements})[width_bucket(p.id, ${ids})]`
