import { BatonClient } from '@baton/client'
import { expect, test } from 'vitest'
import { descriptor } from '../../client/test/support/descriptors.ts'
import { startService } from '../../client/test/support/service.ts'
import { baton } from './support/baton.ts'

/** An 8-bit CSI, a bell, and a character that reverses the text after it. */
const taskId = 'a\u009b2J\u0007\u202egnp.exe'
const UNSAFE = /[^\P{Cc}\n]|[\u202a-\u202e\u2066-\u2069]/u

test('control characters in names and reasons never reach the terminal', async () => {
  const { url } = await startService()
  const client = new BatonClient(url)
  // One fails below, one is pulled, and one is left for `work`.
  await client.callBack([0, 1, 2].map((index) => descriptor(taskId, 0, index, 1)))
  const { partitions } = await client.pull()
  const reason = 'no\u009b31m\u202e such table\u0007'
  const leaseId = partitions[0]?.lease?.id ?? ''
  await client.settle([{ leaseId, outcome: 'failed', final: true, reason }])
  const commands = [
    ['tasks'],
    ['tasks', taskId],
    ['tasks', `${taskId}-unknown`],
    ['partitions', taskId],
    ['partitions', taskId, '--history'],
    ['partitions', taskId, '--json'],
    ['manifest', taskId],
    ['instances'],
    ['pull'],
    ['pause', taskId],
    ['resume', taskId],
    ['audit'],
    ['audit', '--node'],
    ['work', '--until-idle', '--wait', '0', '--', 'false'],
  ]
  for (const command of commands) {
    const { stdout, stderr } = await baton(command, { url })
    expect(`${stdout}${stderr}`, command.join(' ')).not.toMatch(UNSAFE)
    expect(`${stdout}${stderr}`, command.join(' ')).not.toBe('')
  }
  const [worked] = (await client.partitions(taskId)).partitions.slice(2)
  expect(worked?.attempts).toBe(1)
  const { stdout } = await baton(['manifest', taskId], { url })
  const [line] = stdout.split('\n')
  expect(JSON.parse(line ?? '')).toMatchObject({ taskId, history: [{ reason }] })
})
