import type { Measurement, Row } from '../report/model.ts'
import type { Progress } from './bench.ts'
import type { Sizes } from './options.ts'

export interface Contender {
  label: string
  /** Not measured: puts the store into the state that the measurement needs. */
  prepare?(seconds: number): Promise<void>
  measure(seconds: number): Promise<Measurement>
}

/** Warm-up ends when the rate grows by less than this. Smaller differences are noise on a shared machine. */
const WORTH_GOING_ON = 1.04

const rateFormat = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })

/**
 * Measures all contenders once per round, so that other load on the machine affects all of them alike. Every
 * other round runs in reverse order, so that no contender always follows the same one.
 */
export async function interleave(
  contenders: readonly Contender[],
  sizes: Sizes,
  progress: Progress,
): Promise<Row[]> {
  const rows = contenders.map((contender): Row => ({ label: contender.label, measurements: [] }))
  const pairs = contenders.map((contender, index) => ({ contender, row: rows[index] }))
  for (const { contender } of pairs) await warmUp(contender, sizes, progress)
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

/**
 * Warms up until the rate stops growing. The service and most peers' clients run in V8, which keeps compiling
 * for several seconds under load; servers in C and Go are at full speed at once.
 */
async function warmUp(
  contender: Contender,
  { warmUpSeconds, warmUps }: Sizes,
  progress: Progress,
): Promise<void> {
  let best = 0
  for (let run = 1; run <= warmUps; run++) {
    await contender.prepare?.(warmUpSeconds)
    const { rate } = await contender.measure(warmUpSeconds)
    progress.say(`warm-up ${run}: ${contender.label}: ${rateFormat.format(rate)}/s`)
    if (rate < best * WORTH_GOING_ON) return
    best = Math.max(best, rate)
  }
}

/** Returns the row of a contender that the same call to `interleave` measured. */
export function rowOf(rows: readonly Row[], contender: Contender): Row {
  const row = rows.find((candidate) => candidate.label === contender.label)
  if (!row) throw new Error(`no row for ${contender.label}`)
  return row
}
