interface Plot {
  readonly line: string
  readonly area: string
}

interface Frame {
  readonly width: number
  readonly height: number
  readonly ceiling: number
}

interface Point {
  readonly x: number
  readonly y: number
}

/** A line through the values, and the area under it. Both have a gap where values are unknown. */
export function plotOf(series: readonly (number | null)[], { width, height, ceiling }: Frame): Plot {
  const pieces: Point[][] = [[]]
  series.forEach((value, at) => {
    if (value === null) pieces.push([])
    else {
      const x = (at / (series.length - 1)) * width
      pieces.at(-1)?.push({ x, y: height - (value / ceiling) * (height - 4) })
    }
  })
  const known = pieces.filter((points) => points.length > 0)
  return {
    line: known.map(lineOf).join(''),
    area: known.map((points) => areaOf(points, height)).join(''),
  }
}

function lineOf(points: readonly Point[]): string {
  return `M${points.map(({ x, y }) => `${x.toFixed(1)} ${y.toFixed(1)}`).join('L')}`
}

function areaOf(points: readonly Point[], height: number): string {
  const [first, last] = [points[0]?.x ?? 0, points.at(-1)?.x ?? 0]
  return `${lineOf(points)}L${last.toFixed(1)} ${height}L${first.toFixed(1)} ${height}Z`
}

/** Rounds up to the next round number, so that the scale changes rarely and is easy to read. */
export function niceCeiling(value: number): number {
  if (value <= 10) return 10
  const power = 10 ** Math.floor(Math.log10(value))
  const step = [1, 1.5, 2, 3, 4, 5, 6, 8, 10].find((factor) => factor * power >= value) ?? 10
  return step * power
}
