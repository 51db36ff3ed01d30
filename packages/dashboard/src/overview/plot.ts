export interface Plot {
  readonly line: string
  readonly area: string
}

interface Frame {
  readonly width: number
  readonly height: number
  readonly ceiling: number
}

/** A line through the values, and the area under it. Values that are not known leave the left side empty. */
export function plotOf(series: readonly (number | null)[], { width, height, ceiling }: Frame): Plot {
  const points = series.flatMap((value, at) => {
    if (value === null) return []
    const x = (at / (series.length - 1)) * width
    const y = height - (value / ceiling) * (height - 4)
    return [{ x, y }]
  })
  const first = points[0]
  const last = points.at(-1)
  if (first === undefined || last === undefined) return { line: '', area: '' }
  const line = `M${points.map(({ x, y }) => `${x.toFixed(1)} ${y.toFixed(1)}`).join('L')}`
  return { line, area: `${line}L${last.x.toFixed(1)} ${height}L${first.x.toFixed(1)} ${height}Z` }
}

/** The next round number: a scale that jumps rarely and reads easily. */
export function niceCeiling(value: number): number {
  if (value <= 10) return 10
  const power = 10 ** Math.floor(Math.log10(value))
  const step = [1, 1.5, 2, 3, 4, 5, 6, 8, 10].find((factor) => factor * power >= value) ?? 10
  return step * power
}
