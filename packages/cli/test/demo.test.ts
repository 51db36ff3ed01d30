import { readdir } from 'node:fs/promises'
import { BatonClient } from '@baton/client'
import { expect, test } from 'vitest'
import { testFolder } from '../../../test/support/test-folder.ts'
import { until } from '../../../test/support/until.ts'
import { startBaton } from './support/baton.ts'

test('the demo shows tasks that move, and leaves nothing behind', async () => {
  const folder = await testFolder()
  // The demo must not use the settings of a real service.
  const env = { TMPDIR: folder, BATON_TOKENS_FILE: '/nowhere', BATON_URL: 'http://127.0.0.1:1' }
  const demo = startBaton(['demo'], { env })
  const url = await until(() => /http:\S+/.exec(demo.stdout)?.[0])
  const client = new BatonClient(url)
  await until(async () => (await client.totals()).partitions.done > 0)
  const crashing = () => client.instanceStatus('loader-crashing').catch(() => undefined)
  await until(async () => ((await crashing())?.totals.partitions ?? 0) > 0)
  expect(await readdir(folder)).not.toEqual([])
  demo.ctrlC()
  expect(await demo.ended).toMatchObject({ code: 0, stderr: '' })
  expect(await readdir(folder)).toEqual([])
})
