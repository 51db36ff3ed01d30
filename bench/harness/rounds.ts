import type { Measurement, Row } from '../report/model.ts'
import type { Sizes } from './options.ts'
import type { Progress } from './progress.ts'

export interface Contender {
  label: string
  /** Not measured: brings the store into the state that the measurement needs. */
  prepare?(seconds: number): Promise<void>
  measure(seconds: number): Promise<Measurement>
}

const rateFormat = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })

/**
 * All contenders once per round, so that whatever else the machine does hits each of them alike; every
 * other round runs backwards, so that none always has the same neighbour before it.
 */
export async function interleave(
  contenders: readonly Contender[],
  sizes: Sizes,
  progress: Progress,
): Promise<Row[]> {
  const rows = contenders.map((contender): Row => ({ label: contender.label, measurements: [] }))
  const pairs = contenders.map((contender, index) => ({ contender, row: rows[index] }))
  for (const { contender } of pairs) {
    progress.say(`warm-up: ${contender.label}`)
    await contender.prepare?.(sizes.warmUpSeconds)
    await contender.measure(sizes.warmUpSeconds)
  }
  for (let round = 1; round <= sizes.rounds; round++) {
    for (const { contender, row } of round % 2 === 1 ? pairs : pairs.toReversed()) {
      await contender.prepare?.(sizes.seconds)
      const measurement = await contender.measure(sizes.seconds)
      row?.measurements.push(measurement)
      const remark = measurement.remark === undefined ? '' : ` (${measurement.remark})`
      progress.say(
        `round ${round}/${sizes.rounds}: ${contender.label}: ${rateFormat.format(measurement.rate)}/s${remark}`,
      )
    }
  }
  return rows
}

/** The row of a contender that the same call to `interleave` measured. */
export function rowOf(rows: readonly Row[], contender: Contender): Row {
  const row = rows.find((candidate) => candidate.label === contender.label)
  if (!row) throw new Error(`no row for ${contender.label}`)
  return row
}
