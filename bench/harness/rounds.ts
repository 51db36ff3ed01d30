import type { Measurement, Row } from '../report/model.ts'
import type { Progress } from './bench.ts'
import type { Sizes } from './options.ts'

export interface Contender {
  label: string
  /** Not measured: brings the store into the state that the measurement needs. */
  prepare?(seconds: number): Promise<void>
  measure(seconds: number): Promise<Measurement>
}

/** Growing by less than this it is as fast as it gets, as far as a machine with other guests can tell. */
const WORTH_GOING_ON = 1.04

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
 * Until it gets no faster. What runs in V8, the service as well as the clients of most peers, goes on compiling for eight
 * seconds under load and is then a fifth faster than after two; servers in C and Go are as fast as ever at once.
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

/** The row of a contender that the same call to `interleave` measured. */
export function rowOf(rows: readonly Row[], contender: Contender): Row {
  const row = rows.find((candidate) => candidate.label === contender.label)
  if (!row) throw new Error(`no row for ${contender.label}`)
  return row
}
