import { BatonClient } from '@baton/client'
import { describe, expect, test } from 'vitest'
import { descriptors } from '../../client/test/support/descriptors.ts'
import { sharedService } from '../../client/test/support/service.ts'
import { workThrough } from '../../client/test/support/work-through.ts'
import { baton } from './support/baton.ts'

describe('a task that is sealed before all of it was called back', () => {
  const service = sharedService()

  async function doneTask(taskId: string): Promise<void> {
    const client = new BatonClient(service().url)
    await client.callBack(descriptors(taskId, 3))
    await workThrough(client, 3, { outcome: 'done' })
  }

  test('is reported as incomplete when it is sealed, also in JSON', async () => {
    const { url } = service()
    await doneTask('sealed')
    const lacking =
      '7 of 10 partitions were not called back, and the sealed task accepts no new partitions. ' +
      'If the expected number is wrong, seal the task again with the correct number.'
    expect(await baton(['seal', 'sealed', '--yes', '--partitions', '10'], { url })).toEqual({
      code: 0,
      stdout: 'sealed is done, sealed, 10 expected\n',
      stderr: `baton: ${lacking}\n`,
    })
    const { stdout, stderr } = await baton(['seal', 'sealed', '--yes', '--partitions', '10', '--json'], {
      url,
    })
    expect([JSON.parse(stdout), JSON.parse(stderr)]).toMatchObject([{ taskId: 'sealed' }, { note: lacking }])
    expect(await baton(['seal', 'sealed', '--yes', '--partitions', '3'], { url })).toMatchObject({
      code: 0,
      stderr: '',
    })
  })

  test.each([[[]], [['--json']]])('ends watching with a failing exit code: %j', async (flags) => {
    const { url } = service()
    const taskId = `watched${flags.length}`
    await doneTask(taskId)
    const watch = () => baton(['tasks', taskId, '--watch', ...flags], { url })
    await baton(['seal', taskId, '--yes', '--partitions', '10'], { url })
    const incomplete = await watch()
    expect(incomplete.stderr).toContain(`${taskId} is done, but 7 of 10 partitions were not called back`)
    expect(incomplete.code).toBe(1)
    await baton(['seal', taskId, '--yes', '--partitions', '3'], { url })
    expect(await watch()).toMatchObject({ code: 0, stderr: '' })
  })
})
