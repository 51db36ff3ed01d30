import { BatonClient } from '@baton/client'
import { expect, test } from 'vitest'
import { descriptors } from '../../client/test/support/descriptors.ts'
import { startService } from '../../client/test/support/service.ts'
import { exitCodes } from '../src/errors.ts'
import { baton } from './support/baton.ts'

test('subscriptions are added, listed, changed and removed', async () => {
  const { url } = await startService()
  const run = (...args: string[]) => baton(['subscriptions', ...args], { url })
  expect((await run()).stdout).toBe('no subscriptions yet\n')
  const added = await run(
    'add',
    'https://a.invalid/hooks',
    '--type',
    'task.cancelled',
    '--task-prefix',
    'orders-',
  )
  expect(added.stdout).toMatch(/^sub_\S+\nsecret: whsec_\S+ \(shown only once\)\n$/)
  const id = added.stdout.split('\n')[0] ?? ''
  const list = (await run()).stdout
  for (const text of [
    id,
    'active',
    'https://a.invalid/hooks',
    'task.cancelled',
    'orders-…',
    'PENDING',
    'OLDEST',
  ])
    expect(list).toContain(text)
  expect((await run('rotate-secret', id, '--overlap', '60')).stdout).toMatch(/^secret: whsec_/)
  expect((await run('enable', id)).stdout).toBe(`${id} is active\n`)
  expect((await run('deliveries', id)).stdout).toBe('no events yet\n')
  const client = new BatonClient(url)
  await client.callBack(descriptors('orders-1', 1))
  await client.cancel('orders-1')
  expect((await run('deliveries', id)).stdout).toMatch(/task\.cancelled +orders-1 +pending/)
  const { deliveries } = JSON.parse((await run('deliveries', id, '--json')).stdout)
  const event = String(deliveries[0].event)
  expect((await run('redeliver', id, event)).stdout).toBe(`event ${event} is pending\n`)
  expect((await run('remove', id)).stdout).toBe(`${id} is removed\n`)
  expect(await run('remove', id)).toMatchObject({
    stderr: expect.stringContaining('no subscription has this id'),
  })
})

test('invalid arguments are reported', async () => {
  const { url } = await startService()
  const refused = async (args: readonly string[], code: number, text: string) =>
    expect(await baton(['subscriptions', ...args], { url })).toMatchObject({
      code,
      stderr: expect.stringContaining(text),
    })
  await refused(['ad', 'http://a.example/'], exitCodes.usage, '"ad" must be one of list, add')
  await refused(['add'], exitCodes.usage, 'subscriptions add requires URL')
  await refused(
    ['add', 'http://a.example/', '--type', 'task.done', '--type', 'x'],
    exitCodes.usage,
    '--type must be one of',
  )
  await refused(['add', 'http://127.0.0.1/'], exitCodes.refused, 'is not on the public internet')
  await refused(['redeliver', 'sub_x', 'first'], exitCodes.usage, 'EVENT must be a number')
})
