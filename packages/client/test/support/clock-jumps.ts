/** Loaded before a program: makes its wall clock jump by hours, forwards and backwards. */
const RealDate = Date
const jumps = [0, 7_200_000, -86_400_000, 43_000, -1, 3_600_000 * 24 * 365]
let reads = 0

globalThis.Date = class extends RealDate {
  constructor(...given: unknown[]) {
    super(...((given.length === 0 ? [jumpedNow()] : given) as [number]))
  }

  static override now(): number {
    return jumpedNow()
  }
} as DateConstructor

function jumpedNow(): number {
  reads += 1
  return RealDate.now() + (jumps[reads % jumps.length] ?? 0)
}
