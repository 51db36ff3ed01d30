import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { BatonClient } from '@baton/client'
import { describe, expect, onTestFinished, test } from 'vitest'
import { programArguments } from '../../../test/support/programs.ts'
import { testFolder } from '../../../test/support/test-folder.ts'
import { descriptors } from '../../client/test/support/descriptors.ts'
import { startService } from '../../client/test/support/service.ts'

/** Runs a script of the shell in which `"$@"` is the command. */
async function inShell(script: string, args: readonly string[], url = '') {
  const command = [process.execPath, ...programArguments('command'), ...args]
  const child = spawn('sh', ['-c', script, 'sh', ...command], {
    env: { ...process.env, NO_COLOR: '1', BATON_URL: url },
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close'),
  ])
  return { code: code as number, stdout, stderr }
}

describe.skipIf(process.platform !== 'linux')('output that cannot be written', () => {
  test.each([
    ['its reader ends', '"$@" 2>&1 | head -n 1'],
    ['the disk is full', '"$@" 2>/dev/full'],
  ])('a worker continues without its log if %s', async (_, script) => {
    const { url } = await startService()
    const client = new BatonClient(url)
    await client.callBack(descriptors('orders', 6))
    const { code } = await inShell(script, ['work', '--until-idle', '-c', '2', '--', 'sleep', '0.1'], url)
    expect(code).toBe(0)
    expect(await client.task('orders')).toMatchObject({ state: 'done', attemptsWasted: 0 })
  })

  test('stdout on a full disk is reported in one line', async () => {
    const { url } = await startService()
    const { code, stderr } = await inShell('"$@" >/dev/full', ['tasks'], url)
    expect(stderr).toBe('baton: standard output cannot be written (ENOSPC)\n')
    expect(code).toBe(1)
  })

  test('a reader that ends does not change the exit code of a command', async () => {
    const { url } = await startService()
    const client = new BatonClient(url)
    await client.callBack(descriptors('orders', 2))
    const unread = (...args: string[]) => inShell('{ "$@"; echo $? >&2; } | true', args, url)
    expect(await unread('tasks', 'orders', '--watch', '--interval', '0.1')).toMatchObject({ stderr: '1\n' })
    expect(await unread('settle', 'unknown')).toMatchObject({ stderr: expect.stringMatching(/\n1\n$/) })
    await client.cancel('orders')
    expect(await unread('wait', 'orders')).toMatchObject({ stderr: '7\n' })
    expect(await unread('manifest', 'orders')).toMatchObject({ stderr: '0\n' })
  })

  test('a service starts although the line that says where it listens cannot be written', async () => {
    const folder = await testFolder()
    const script = `"$@" >/dev/full 2>log & until grep -q accepting log; do sleep 0.1; done
      kill -TERM $!; wait $!; cat log >&2`
    const { stderr } = await inShell(`cd ${folder}; ${script}`, ['serve', '--port', '0', '--data', folder])
    expect(stderr).toContain('"msg":"stopped"')
    expect(stderr).not.toContain('ENOSPC')
  })

  test('a command for which there is no file descriptor leaves no lease behind', async () => {
    const { url } = await startService()
    const client = new BatonClient(url)
    await client.callBack(descriptors('orders', 40))
    const args = ['work', '-c', '40', '--', 'sleep', '1']
    const { code, stderr } = await inShell('ulimit -n 45; "$@"', args, url)
    expect(stderr).toContain('sleep cannot be run (EMFILE); its partition was released')
    expect(code).toBe(126)
    const { partitions } = await client.task('orders')
    expect(partitions).toMatchObject({ leased: 0, delayed: 0, total: 40 })
  })
})
