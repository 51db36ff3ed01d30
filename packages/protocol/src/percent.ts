/**
 * How much of a whole is there, in the same words wherever people look: never 100 % before it is all, never 0 % once it is
 * something. Undefined where there is nothing to have a part of.
 */
export function percentOf(part: number, whole: number): string | undefined {
  if (whole === 0) return undefined
  const share = (part / whole) * 100
  if (share > 0 && share < 1) return '<1%'
  if (share < 100 && share > 99) return '99%'
  return `${Math.round(share)}%`
}
