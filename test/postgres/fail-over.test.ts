import { test } from 'vitest'
import { ReplicatedPair } from './support/replicated-pair.ts'
import { expectAllDone, loadOn, startNode } from './support/scene.ts'

const LEASE_MILLIS = 2000

test('the primary dies, the standby takes over, and nothing that was acknowledged is missing', async () => {
  const pair = await ReplicatedPair.start()
  const nodes = await Promise.all(['north', 'east'].map((name) => startNode(name, pair.url, LEASE_MILLIS)))
  try {
    const urls = nodes.map((node) => node.url)
    const load = loadOn({ urls, leaseMillis: LEASE_MILLIS, arrays: 30, workers: 8 })
    const loading = load.run()
    loading.catch(() => {})
    await load.reached(0.4)
    await pair.failOver()
    await loading
    await expectAllDone(load, pair.url)
  } finally {
    await Promise.all(nodes.map((node) => node.kill()))
    await pair.dispose()
  }
}, 120_000)
