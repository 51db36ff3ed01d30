import { errorsOf, fleets, shares } from './errors.ts'

// Prints the table of docs/time-left.md: the error of the time left in simulated fleets.

const factor = (times: number) => times.toFixed(times < 10 ? 2 : 0)
const percent = (share: number) => `${Math.round(share * 100)} %`

console.log(
  '| fleet | share done | by the pace alone: median, p90 | now: median, p90 | estimates given, before and now |',
)
console.log('|---|---|---|---|---|')
for (const fleet of fleets) {
  const [before, now] = [errorsOf(fleet, 'pace'), errorsOf(fleet, 'attempts')]
  for (const [at, { name }] of shares.entries()) {
    const [old, fresh] = [before[at], now[at]]
    if (old === undefined || fresh === undefined) continue
    console.log(
      `| ${fleet.name} | ${name} | ${factor(old.median)}, ${factor(old.p90)} | ${factor(fresh.median)}, ${factor(fresh.p90)} | ${percent(old.estimated)}, ${percent(fresh.estimated)} |`,
    )
  }
}
