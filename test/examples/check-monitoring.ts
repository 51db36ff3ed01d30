// Checks examples/monitoring with real programs: promtool checks and tests the rules, and a Prometheus that
// scrapes a running service answers every query of the dashboard. Needs `prometheus` and `promtool`.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { BatonClient } from '@baton/client'
import { freePort } from '../../bench/harness/clean-up.ts'
import { openApp } from '../../packages/server/src/app.ts'
import { readSettings } from '../../packages/server/src/settings.ts'
import { quiet } from '../support/quiet-log.ts'
import { monitoring, readDashboard } from './support/monitoring.ts'

const SCRAPE_SECONDS = 1

function requirePrograms(...names: string[]): void {
  const missing = names.filter((name) => spawnSync(name, ['--version']).error !== undefined)
  if (missing.length === 0) return
  console.error(`not found: ${missing.join(', ')}. On Debian and Ubuntu: apt-get install prometheus`)
  process.exit(2)
}

function promtool(...args: string[]): void {
  const { status, stdout, stderr } = spawnSync('promtool', args, { cwd: monitoring, encoding: 'utf8' })
  process.stdout.write(stdout + stderr)
  if (status !== 0) throw new Error(`promtool ${args.join(' ')} ended with ${status}`)
}

/** A service that is never idle, so that rates are not zero. */
async function startService(folder: string) {
  const { config } = readSettings(new Map(), {})
  const app = await openApp({ ...config, data: join(folder, 'data') }, { log: quiet })
  const url = await app.http.listen({ host: '127.0.0.1', port: 0 })
  const client = new BatonClient({ url, instanceId: 'loader-1' })
  const partitions = Array.from({ length: 400 }, (_, index) => ({
    taskId: 'orders',
    computeTableName: 'results.orders',
    partition_name: `orders-0-${index}`,
    record_count: 100,
    priorityLevel: 0,
  }))
  await client.callBack(partitions)
  const stop = new AbortController()
  const working = (async () => {
    while (!stop.signal.aborted) {
      const { partitions: pulled } = await client.pull({ batch: 2 })
      await client.renew(pulled.flatMap(({ lease }) => lease?.id ?? []))
      await client.settle(pulled.map(({ lease }) => ({ leaseId: lease?.id ?? '', outcome: 'done' as const })))
      await pause(250)
    }
  })()
  const close = async () => {
    stop.abort()
    await working
    await app.close()
  }
  return { url, close }
}

async function startPrometheus(folder: string, target: string) {
  const port = await freePort()
  const configuration = {
    global: { scrape_interval: `${SCRAPE_SECONDS}s`, evaluation_interval: `${SCRAPE_SECONDS}s` },
    rule_files: [join(monitoring, 'baton.rules.yml')],
    scrape_configs: [{ job_name: 'baton', static_configs: [{ targets: [new URL(target).host] }] }],
  }
  // JSON is YAML.
  writeFileSync(join(folder, 'prometheus.yml'), JSON.stringify(configuration))
  const process = spawn(
    'prometheus',
    [
      `--config.file=${join(folder, 'prometheus.yml')}`,
      `--storage.tsdb.path=${join(folder, 'tsdb')}`,
      `--web.listen-address=127.0.0.1:${port}`,
    ],
    { stdio: ['ignore', 'ignore', 'inherit'] },
  )
  const ended = once(process, 'exit')
  const close = async () => {
    process.kill('SIGTERM')
    await ended
  }
  return { url: `http://127.0.0.1:${port}`, close }
}

interface Answered {
  readonly status: string
  readonly error?: string
  readonly data?: { readonly result: readonly unknown[] }
}

const ask = async (prometheus: string, path: string): Promise<Answered> =>
  (await (await fetch(`${prometheus}/api/v1/${path}`)).json()) as Answered

async function scrapedTimes(prometheus: string, times: number): Promise<void> {
  const query = encodeURIComponent('count_over_time(baton_ready[10m])')
  for (let tries = 0; tries < 240; tries += 1) {
    await pause(500)
    const answer = await ask(prometheus, `query?query=${query}`).catch(() => undefined)
    const [first] = (answer?.data?.result ?? []) as { value: [number, string] }[]
    if (Number(first?.value[1] ?? 0) >= times) return
  }
  throw new Error('Prometheus did not scrape the service')
}

async function checkQueries(prometheus: string): Promise<void> {
  const targets = readDashboard().panels.flatMap(({ title, targets: shown = [] }) =>
    shown.map(({ expr }) => ({ title, expr })),
  )
  let empty = 0
  const faults: string[] = []
  for (const { title, expr } of targets) {
    const query = expr.replaceAll('$job', 'baton').replaceAll('$__rate_interval', `${8 * SCRAPE_SECONDS}s`)
    const { status, error, data } = await ask(prometheus, `query?query=${encodeURIComponent(query)}`)
    if (status !== 'success') faults.push(`${title}: ${query}: ${error}`)
    else if (data?.result.length === 0) {
      empty += 1
      faults.push(`${title}: ${query}: no series`)
    }
  }
  const { data } = (await ask(prometheus, 'rules')) as {
    data?: { groups?: { rules: { health: string }[] }[] }
  }
  const rules = data?.groups?.flatMap((group) => group.rules) ?? []
  const unwell = rules.filter(({ health }) => health !== 'ok').length
  console.log(
    `${targets.length} queries of the dashboard: ${targets.length - faults.length} with series, ${empty} without; ` +
      `${rules.length} rules evaluated, ${unwell} with errors`,
  )
  if (unwell > 0 || rules.length === 0) faults.push('not all rules could be evaluated')
  if (faults.length > 0) throw new Error(faults.join('\n'))
}

requirePrograms('prometheus', 'promtool')
promtool('check', 'rules', 'baton.rules.yml')
promtool('check', 'config', 'prometheus.yml')
promtool('test', 'rules', 'baton.rules.test.yml')
const folder = mkdtempSync(join(tmpdir(), 'baton-monitoring-'))
const service = await startService(folder)
try {
  const prometheus = await startPrometheus(folder, service.url)
  try {
    await scrapedTimes(prometheus.url, 10)
    await checkQueries(prometheus.url)
  } finally {
    await prometheus.close()
  }
} finally {
  await service.close()
  rmSync(folder, { recursive: true, force: true })
}
