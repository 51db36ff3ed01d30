import { chmodSync } from 'node:fs'
import { BatonClient } from '@baton/client'
import { describe, expect, test } from 'vitest'
import { until } from '../../../test/support/until.ts'
import { descriptors } from '../../client/test/support/descriptors.ts'
import { startService } from '../../client/test/support/service.ts'
import { baton, startBaton } from './support/baton.ts'
import { Scratch } from './support/scratch.ts'

describe('at-most-once delivery', () => {
  async function called(count: number) {
    const { url } = await startService('--delivery', 'at-most-once')
    await new BatonClient(url).callBack(descriptors('orders', count))
    return url
  }

  test('the outcome of each command is reported and counted, and a failure sets the exit code', async () => {
    const url = await called(3)
    const script = 'case "$BATON_PARTITION_NAME" in *-1) echo locked >&2; exit 1 ;; *-2) exit 75 ;; esac'
    const { code, stderr } = await baton(['work', '--until-idle', '-c', '2', '--', 'sh', '-c', script], {
      url,
    })
    expect(stderr).toMatch(/orders-0-0 done after/)
    expect(stderr).toMatch(/orders-0-1 failed permanently after .*: exit code 1: locked/)
    expect(stderr).toMatch(/orders-0-2 lost after .*: exit code 75/)
    expect(stderr).toContain('1 partition done, 1 failed, 0 released, 1 lost')
    expect(code).toBe(1)
    const { stdout } = await baton(['tasks', 'orders'], { url })
    expect(stdout).toContain('3 partitions settled by delivery, which counts as done')
  })

  test('a level barrier is refused with a message for the command line', async () => {
    const url = await called(1)
    expect(await baton(['level-barrier', 'orders', 'on'], { url })).toEqual({
      code: 1,
      stdout: '',
      stderr:
        'baton: the service refused the request\n' +
        '  a level barrier requires leases, and this service delivers at most once\n',
    })
  })

  test('nothing is reported as released if the command does not exist', async () => {
    const url = await called(2)
    const scratch = new Scratch()
    // It exists at the first check, and is gone when the second partition needs it.
    const vanishing = scratch.file('once.sh', '#!/bin/sh\nrm "$0"\n')
    chmodSync(vanishing, 0o755)
    const { code, stderr } = await baton(['work', '--', vanishing], { url })
    expect(stderr).toContain('its partition cannot be released: the service counts it as done')
    expect(stderr).not.toContain('was released')
    expect(code).toBe(127)
  })

  test('nothing is reported as released after Ctrl-C twice', async () => {
    const url = await called(1)
    const scratch = new Scratch()
    const script = 'echo begun > "$OUT/begun"; exec sleep 1000'
    const working = startBaton(['work', '--', 'sh', '-c', script], { url, env: { OUT: scratch.path } })
    await until(() => scratch.lines('begun').length === 1)
    working.ctrlC()
    await until(() =>
      working.stderr.includes(
        'finishing 1 partition; Ctrl-C again stops the commands and loses their partitions',
      ),
    )
    working.ctrlC()
    expect(await working.ended).toMatchObject({ code: 130 })
    expect(working.stderr).toContain('stopping commands; their partitions cannot be released')
    expect(working.stderr).toMatch(/orders-0-0 lost after/)
    expect(working.stderr).toContain('0 partitions done, 0 failed, 0 released, 1 lost')
  })
})
