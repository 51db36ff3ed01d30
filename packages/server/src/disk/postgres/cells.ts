import type { CellCount, CellsOfLane } from '../../handoff/disk.ts'
import type { Row, Statement } from './session/connection.ts'

/**
 * The states of partitions, counted by cell, for the grid of a level. `id + 0` keeps the planner from using the
 * index on id: rows are to be read in the order of their index.
 */
export function countCellsStatement({ lane, tail, by }: CellsOfLane): Statement {
  const fields = `'cell', cell, 'state', state, 'partitions', partitions, 'first', first, 'last', last`
  const text = (counted: string) =>
    `SELECT json_build_object(${fields}) AS counted FROM (${counted}) c ORDER BY cell`
  if (by.kind === 'rank')
    return {
      text: text(`SELECT (place - 1) / $3::bigint AS cell, state, count(*) AS partitions, min(idx) AS first, max(idx) AS last
        FROM (SELECT idx, state, row_number() OVER (ORDER BY idx) AS place FROM
          (SELECT idx, state FROM baton.partition WHERE lane = $1 AND id + 0 <= $2 ORDER BY idx LIMIT $4) r) p
        GROUP BY 1, state`),
      values: [lane, tail, by.width, by.limit],
    }
  const rows = (condition: string) => `SELECT idx, state FROM baton.partition
    WHERE lane = $1 AND idx BETWEEN g.first AND g.last AND id + 0 <= $2 AND ${condition} ORDER BY idx LIMIT $4`
  return {
    text: text(`WITH bound AS MATERIALIZED (
        SELECT (SELECT min(idx) FROM baton.partition WHERE lane = $1) AS lowest,
          (SELECT max(idx) FROM baton.partition WHERE lane = $1) AS highest),
      wide AS MATERIALIZED (SELECT *, (highest - lowest + $3::bigint) / $3::bigint AS width FROM bound),
      g AS MATERIALIZED (SELECT cell, lowest + cell * width AS first, least(lowest + (cell + 1) * width - 1, highest) AS last
        FROM wide, generate_series(0, $3::bigint - 1) AS cell)
      SELECT g.cell, r.state, count(*) AS partitions, g.first, g.last FROM g CROSS JOIN LATERAL
        (SELECT state FROM (${rows('true')}) s WHERE state <> 'parked'
         UNION ALL SELECT state FROM (${rows('is_parked')}) s) r
      GROUP BY g.cell, g.first, g.last, r.state`),
    values: [lane, tail, by.cells, by.each],
  }
}

export const readCellCount = (row: Row): CellCount => row['counted'] as CellCount
