import { BatonClient } from '@baton/client'
import { expect, test } from 'vitest'
import { until } from '../../../test/support/until.ts'
import { descriptors } from '../../client/test/support/descriptors.ts'
import { startService } from '../../client/test/support/service.ts'
import { workThrough } from '../../client/test/support/work-through.ts'
import { baton } from './support/baton.ts'

test('a purged task is shown as such', async () => {
  const { url } = await startService('--retention-days', '0')
  const client = new BatonClient(url)
  await client.callBack(descriptors('old', 2))
  await workThrough(client, 2, { outcome: 'done' })
  // Retention runs right after a control request, and every ten seconds otherwise.
  await client.seal('old')
  await until(async () => (await client.task('old')).purgedAt !== null)
  const forgotten = 'retention deleted the partitions; the counts are kept'
  const listed = await baton(['partitions', 'old'], { url })
  expect(listed).toEqual({ code: 0, stdout: '', stderr: `baton: old: ${forgotten}\n` })
  const json = await baton(['partitions', 'old', '--json'], { url })
  expect(JSON.parse(json.stdout)).toEqual({ partitions: [], next: null })
  expect(JSON.parse(json.stderr)).toEqual({ note: `old: ${forgotten}` })
  expect((await baton(['tasks', 'old'], { url })).stdout).toContain(`\n${forgotten}\n`)
})

test('a task without matching partitions is shown as such', async () => {
  const { url } = await startService()
  await new BatonClient(url).callBack(descriptors('new', 2))
  const { code, stdout, stderr } = await baton(['partitions', 'new', '--state', 'parked'], { url })
  expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: 'no partition matches\n', stderr: '' })
})
