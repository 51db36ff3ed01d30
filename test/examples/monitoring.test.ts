import { describe, expect, test } from 'vitest'
import { metrics } from '../../packages/server/src/http/observability/metrics.ts'
import { Scrape } from '../../packages/server/test/support/scrape.ts'
import { descriptors, leaseId, TestApp } from '../../packages/server/test/support/test-app.ts'
import { monitoring, readDashboard, readRules, readYaml } from './support/monitoring.ts'
import { askedIn, groupedBy, namedInLegend, type Requested } from './support/promql.ts'

const rules = readRules()
const dashboard = readDashboard()
const targets = dashboard.panels.flatMap(({ targets: shown = [] }) => shown)
const definitions = dashboard.templating.list.map(({ query }) =>
  typeof query === 'string' ? query : query.query,
)
const queries = [...rules.map(({ expr }) => expr), ...targets.map(({ expr }) => expr), ...definitions]

/** A histogram is queried by its parts. */
const familyOf = (series: string) =>
  metrics.find(({ name, type }) => {
    const names = type === 'histogram' ? ['_bucket', '_sum', '_count'].map((end) => name + end) : [name]
    return names.includes(series)
  })

describe('every query of the rules and the dashboard', () => {
  const asked = queries.flatMap(askedIn)

  test('uses an existing metric, with labels that it has', () => {
    expect(asked.length).toBeGreaterThan(50)
    const wrong = asked.filter(({ series, labels }) => {
      const family = familyOf(series)
      return family === undefined || labels.some(({ name }) => !family.labels.includes(name))
    })
    expect(wrong).toEqual([])
  })

  test('groups by, and is described with, labels that it has', () => {
    const spoken = [
      ...queries.map((query) => ({ query, names: groupedBy(query) })),
      ...targets.map(({ expr, legendFormat }) => ({ query: expr, names: namedInLegend(legendFormat) })),
      ...rules.map(({ expr, annotations }) => ({ query: expr, names: namedInLegend(annotations.summary) })),
    ]
    const wrong = spoken.filter(({ query, names }) => {
      const known = askedIn(query).flatMap(({ series }) => familyOf(series)?.labels ?? [])
      return names.some((name) => !known.includes(name))
    })
    expect(wrong).toEqual([])
  })

  test('matches a series of a running service', async () => {
    const baton = await TestApp.open()
    await baton.callBack(...descriptors('orders', 8))
    // Enough partitions for a throughput.
    const leases = (await baton.pull({ prefer: 'batch=5' })).map(leaseId)
    await baton.post(
      '/settle',
      leases.map((id) => ({ leaseId: id, outcome: 'done' })),
    )
    const { families } = await Scrape.of(baton)
    const series = [...families.values()].flatMap((family) => [...family.series.keys()])
    const found = (name: string, label?: string, value?: string) =>
      series.some((one) => {
        const text = label === undefined ? '' : `${label}="${value ?? ''}`
        return (one === name || one.startsWith(`${name}{`)) && one.includes(text)
      })
    const isMissing = ({ series: name, labels }: Requested) =>
      !found(name) ||
      labels.some(({ name: label, values }) =>
        values.some((value) => !found(name, label, describeValue(label, value))),
      )
    expect(asked.filter(isMissing)).toEqual([])
  })

  /** Which statuses occur depends on the requests, so the label `status` is not compared. */
  const describeValue = (label: string, value: string) => (label === 'status' ? '' : `${value}"`)
})

test('the dashboard shows every metric that is not covered by another', () => {
  const shown = new Set(
    targets.flatMap(({ expr }) => askedIn(expr).map(({ series }) => familyOf(series)?.name)),
  )
  expect(metrics.map(({ name }) => name).filter((name) => !shown.has(name))).toEqual([
    'baton_process_timers',
    'baton_backlog_complete',
  ])
})

test('the panels of the dashboard have unique ids and do not overlap', () => {
  const { panels, schemaVersion } = dashboard
  expect(schemaVersion).toBeGreaterThanOrEqual(39)
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length)
  const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) => {
    expect(x + w).toBeLessThanOrEqual(24)
    return Array.from({ length: w * h }, (_, at) => `${x + (at % w)},${y + Math.floor(at / w)}`)
  })
  expect(new Set(cells).size).toBe(cells.length)
})

test('every rule has a test in which it fires', () => {
  const { tests } = readYaml(`${monitoring}baton.rules.test.yml`) as {
    tests: { alert_rule_test: { alertname: string; exp_alerts: unknown[] }[] }[]
  }
  const expected = tests
    .flatMap(({ alert_rule_test }) => alert_rule_test)
    .filter(({ exp_alerts }) => exp_alerts.length > 0)
  const tested = new Set(expected.map(({ alertname }) => alertname))
  expect(rules.map(({ alert }) => alert).filter((alert) => !tested.has(alert))).toEqual([])
})
