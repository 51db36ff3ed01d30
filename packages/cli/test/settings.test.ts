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

test('settings set a pause after failures, and the task says why it is paused', async () => {
  const { url } = service()
  const client = new BatonClient(url)
  const run = (...args: string[]) => baton(['settings', 'pausing', ...args], { url })
  const wrong = await run('--pause-after-failures', 'half')
  expect(wrong).toMatchObject({ code: 2, stdout: '' })
  expect(wrong.stderr).toContain('--pause-after-failures must be a share and a number of attempts')
  expect((await run('--pause-after-failures', '2/20')).stderr).toContain('--pause-after-failures')
  expect((await run('--weight', '2')).stdout).toMatch(/pause-after-failures +never +the service/)
  expect((await run('--pause-after-failures', '1/1')).stdout).toMatch(/pause-after-failures +1\/1 +this task/)
  const table = 'results.pausing'
  const partition = { taskId: 'pausing', partition_name: 'pausing-0-0', priorityLevel: 0 }
  const settings = { pauseAfterFailures: { share: 0.5, of: 1 } }
  await client.callBack([{ ...partition, record_count: 1, computeTableName: table }], { settings })
  expect((await client.settings('pausing')).settings).toMatchObject(settings)
  const { partitions } = await client.pull({ tasks: ['pausing'] })
  await client.settle([{ leaseId: partitions[0]?.lease?.id ?? '', outcome: 'failed' }])
  const { stdout } = await baton(['tasks', 'pausing'], { url })
  expect(stdout).toMatch(
    /paused itself .*, because 1 of the last 1 attempt failed or expired: baton resume pausing/,
  )
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
