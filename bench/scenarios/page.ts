import { BatonClient } from '@baton/client'
import type { Browser, Page } from 'playwright-core'
import { launchChromium } from '../../test/browser/support/chromium.ts'
import type { Bench, Scenario } from '../harness/bench.ts'
import { temporaryFolder } from '../harness/clean-up.ts'
import { startBaton } from '../harness/services.ts'
import { HttpConnection } from '../load/http-connection.ts'
import { callBackRequest } from '../load/requests.ts'
import type { Figure } from '../report/model.ts'

const TASK = 'page-under-load'
const PER_ARRAY = 20_000
const GOAL = { atMost: 1000 }
const LOOKED_ON_MILLIS = 3000

/** A page, and what shows that it has its data. */
interface Look {
  readonly name: string
  readonly path: string
  readonly shown: string
}

const looks: readonly Look[] = [
  { name: 'overview', path: '/', shown: '.task-row' },
  { name: 'task', path: `/#/tasks/${TASK}`, shown: '.partitions tbody th button' },
  {
    name: 'one level of it',
    path: `/#/tasks/${TASK}?level=7`,

    shown: '.partitions tbody th button',
  },
  { name: 'instances', path: '/#/instances', shown: '.fleet tbody th a' },
  {
    name: 'an instance',
    path: '/#/instances/worker-0',
    shown: '.held tbody th a',
  },
  { name: 'tables', path: '/#/tables', shown: '.fleet tbody th' },
  { name: 'API reference', path: '/docs', shown: '.operation-path' },
]

/** Partitions of one task, by ascending level. Each level has one of the tables. */
function body(first: number, count: number, levels: number, tables: number): string {
  const parts: string[] = []
  for (let made = 0; made < count; made++) {
    const level = Math.floor((made * levels) / count)
    parts.push(
      `{"taskId":"${TASK}","computeTableName":"bench.result_${level % tables}",` +
        `"partition_name":"${TASK}-${level}-${first + made}","record_count":${1000 + made},"priorityLevel":${level}}`,
    )
  }
  return `[${parts.join(',')}]`
}

async function fill(url: string, { sizes, progress, cleanUp }: Bench): Promise<void> {
  const { storedAtStart, pageLevels, pageTables, pageInstances } = sizes
  progress.say(`filling ${storedAtStart} partitions in ${pageLevels} levels`)
  const connection = await HttpConnection.open(url)
  cleanUp.add(async () => connection.close())
  for (let first = 0; first < storedAtStart; first += PER_ARRAY) {
    const count = Math.min(PER_ARRAY, storedAtStart - first)
    const request = callBackRequest(url, body(first, count, pageLevels, pageTables))
    const { status, body: answer } = await connection.exchange(request)
    if (status !== 200) throw new Error(`call-back answered ${status}: ${answer.slice(0, 500)}`)
  }
  progress.say(`${pageInstances} instances`)
  for (let at = 0; at < pageInstances; at++) {
    const client = new BatonClient({ url, instanceId: `worker-${at}` })
    const { partitions } = await client.pull({ batch: 8 })
    // One host in a hundred is bad; each goes on to hold two leases.
    const outcome = at % 100 === 7 ? ('failed' as const) : ('done' as const)
    await client.settle(partitions.slice(2).map(({ lease }) => ({ leaseId: lease?.id ?? '', outcome })))
  }
}

interface Seen {
  /** From the begin of the visit until the data is on the screen. */
  readonly shown: number
  /** From the arrival of the last data that it needs until the page shows it and responds. */
  readonly interactive: number
  /** Of the main thread of the page, until some seconds later: what a busy machine does not change. */
  readonly processor: number
}

/** Notes when the content is there, and when the main thread was busy for long. */
const observer = (shown: string) => `
  window.busy = []
  new PerformanceObserver((list) => {
    for (const { startTime, duration } of list.getEntries()) window.busy.push([startTime, startTime + duration])
  }).observe({ type: 'longtask', buffered: true })
  new MutationObserver((_, self) => {
    if (document.querySelector(${JSON.stringify(shown)}) === null) return
    self.disconnect()
    requestAnimationFrame(() => setTimeout(() => { window.shownAt = performance.now() }))
  }).observe(document, { subtree: true, childList: true })`

/** It responds when no long task begins for a while. */
const measured = `(() => {
  const shown = window.shownAt
  const arrived = performance.getEntriesByType('resource')
    .filter(({ initiatorType, responseEnd }) => initiatorType === 'fetch' && responseEnd < shown)
  let ready = shown
  for (const [from, to] of window.busy) if (to > ready && from < ready + 200) ready = to
  return { shown, interactive: ready - Math.max(...arrived.map(({ responseEnd }) => responseEnd)) }
})()`

async function visit(browser: Browser, url: string, { path, shown }: Look): Promise<Seen> {
  const context = await browser.newContext({
    viewport: { width: 1440, height: 900 },
    reducedMotion: 'reduce',
  })
  try {
    const page: Page = await context.newPage()
    const session = await context.newCDPSession(page)
    await session.send('Performance.setTimeDomain', { timeDomain: 'threadTicks' })
    await session.send('Performance.enable')
    await page.addInitScript(observer(shown))
    await page.goto(url + path)
    await page.locator(shown).first().waitFor()
    await page.waitForTimeout(LOOKED_ON_MILLIS)
    const { metrics } = await session.send('Performance.getMetrics')
    const processor = (metrics.find(({ name }) => name === 'TaskDuration')?.value ?? Number.NaN) * 1000
    return { ...((await page.evaluate(measured)) as Omit<Seen, 'processor'>), processor }
  } finally {
    await context.close()
  }
}

async function run(bench: Bench) {
  const { sizes, progress, cleanUp } = bench
  const { url } = await startBaton({ dataFolder: temporaryFolder('data', cleanUp) }, cleanUp)
  await fill(url, bench)
  const browser = await launchChromium()
  cleanUp.add(() => browser.close())
  const figures: Figure[] = []
  for (const look of looks) {
    const interactive: Figure = {
      label: `${look.name}: interactive after its data`,
      unit: 'ms',
      values: [],
      goal: GOAL,
    }
    const processor: Figure = { label: `${look.name}: processor time of the page`, unit: 'ms', values: [] }
    const whole: Figure = { label: `${look.name}: shown after the visit began`, unit: 'ms', values: [] }
    for (let round = 1; round <= sizes.rounds; round++) {
      const seen = await visit(browser, url, look)
      interactive.values.push(seen.interactive)
      whole.values.push(seen.shown)
      processor.values.push(seen.processor)
    }
    progress.say(`${look.name}: ${interactive.values.map(Math.round).join(', ')} ms`)
    figures.push(interactive, whole, processor)
  }
  return {
    rows: [],
    figures,
    notes: [
      `${sizes.storedAtStart} partitions in ${sizes.pageLevels} levels, ${sizes.pageInstances} instances, ${sizes.pageTables} tables; a browser without a cache, without a graphics card.`,
    ],
  }
}

export const pageUnderLoad: Scenario = {
  name: 'page',
  title: 'The page in a browser: a million partitions, SQLite',
  run,
}
