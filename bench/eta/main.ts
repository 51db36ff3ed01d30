import { errorsOf, fleets, shares } from './errors.ts'

// Prints the table of bench/README.md: the error of the time left in simulated fleets.

const factor = (times: number) => times.toFixed(times < 10 ? 2 : 0)
const percent = (share: number) => `${Math.round(share * 100)} %`

console.log(
  '| fleet | share done | simple formula: median, p90 | estimate: median, p90 | share of samples with a result, both |',
)
console.log('|---|---|---|---|---|')
for (const fleet of fleets) {
  const [simple, estimated] = [errorsOf(fleet, 'pace'), errorsOf(fleet, 'attempts')]
  for (const [at, { name }] of shares.entries()) {
    const [formula, estimate] = [simple[at], estimated[at]]
    if (formula === undefined || estimate === undefined) continue
    console.log(
      `| ${fleet.name} | ${name} | ${factor(formula.median)}, ${factor(formula.p90)} | ${factor(estimate.median)}, ${factor(estimate.p90)} | ${percent(formula.estimated)}, ${percent(estimate.estimated)} |`,
    )
  }
}
