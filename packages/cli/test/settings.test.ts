import { BatonClient } from '@baton/client'
import { expect, test } from 'vitest'
import { sharedService } from '../../client/test/support/service.ts'
import { baton } from './support/baton.ts'

const service = sharedService()

test('settings shows the settings of a task, and changes only those that are given', async () => {
  const { url } = service()
  const run = (...args: string[]) => baton(['settings', 'set', ...args], { url })
  const shown = async () => (await new BatonClient(url).settings('set')).settings
  expect(await run()).toMatchObject({ code: 3, stdout: '' })
  const first = await run('--max-leases', '8', '--lease-seconds', '1800', '--level-barrier', 'on')
  expect(first.stdout).toMatch(/max-leases +8 +this task/)
  const look = await run()
  expect(look).toMatchObject({ code: 0, stdout: first.stdout })
  expect((await run('--weight', '3')).stdout).toMatch(/weight +3 +this task/)
  const own = ['leaseSeconds', 'levelBarrier', 'maxLeases', 'weight']
  expect(await shown()).toMatchObject({ maxLeases: 8, leaseSeconds: 1800, weight: 3, own })
  const reset = await run('--reset', 'max-leases', '--reset', 'level-barrier', '--weight', '2')
  expect(reset.stdout).toMatch(/max-leases +no limit +the service/)
  expect(await shown()).toMatchObject({ weight: 2, own: ['leaseSeconds', 'weight'] })
})

test('settings that contradict each other change nothing, and the message names the flag', async () => {
  const { url } = service()
  const run = (...args: string[]) => baton(['settings', 'firm', ...args], { url })
  await run('--backoff-seconds', '60')
  const shorter = await run('--backoff-max-seconds', '30', '--weight', '2')
  expect(shorter).toMatchObject({ code: 1, stdout: '' })
  expect(shorter.stderr).toContain('--backoff-max-seconds')
  const both = await run('--weight', '2', '--reset', 'weight')
  expect(both).toMatchObject({ code: 2, stdout: '' })
  expect(both.stderr).toContain('--weight and --reset weight exclude each other')
  const { settings } = await new BatonClient(url).settings('firm')
  expect(settings.own).toEqual(['backoffSeconds'])
})
