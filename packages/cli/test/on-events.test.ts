import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { BatonClient } from '@baton/client'
import { describe, expect, test } from 'vitest'
import { localServer } from '../../../test/support/local-server.ts'
import { testFolder } from '../../../test/support/test-folder.ts'
import { until } from '../../../test/support/until.ts'
import { descriptors } from '../../client/test/support/descriptors.ts'
import { startService } from '../../client/test/support/service.ts'
import { workThrough } from '../../client/test/support/work-through.ts'
import { exitCodes } from '../src/errors.ts'
import { baton, startBaton } from './support/baton.ts'

async function scene() {
  const { url } = await startService()
  const folder = await testFolder()
  const client = new BatonClient(url)
  const finish = async (taskId: string) => {
    await client.callBack(descriptors(taskId, 1))
    await workThrough(client, 1, { outcome: 'done' })
  }
  const state = join(folder, 'state.json')
  const log = join(folder, 'log')
  const append = `echo "$BATON_EVENT_TYPE $BATON_TASK_ID" >> ${log}`
  const args = (...more: string[]) => ['on', 'task.done', '--state', state, '--interval', '0.1', ...more]
  const logged = async () =>
    (await readFile(log, 'utf8').catch(() => '')).split('\n').filter((line) => line !== '')
  return { url, client, finish, state, log, append, args, logged }
}

describe('baton on', () => {
  test('runs the command for each event, and continues where it stopped', async () => {
    const { url, finish, args, append, logged, client, state } = await scene()
    expect(await baton([...args('--once'), '--', 'sh', '-c', append], { url })).toMatchObject({ code: 0 })
    expect(await logged()).toEqual([])
    for (const task of ['a', 'b']) await finish(task)
    await baton([...args('--once'), '--', 'sh', '-c', append], { url })
    expect(await logged()).toEqual(['task.done a', 'task.done b'])
    await finish('c')
    const going = startBaton([...args(), '--', 'sh', '-c', append], { url })
    await until(async () => (await logged()).length === 3)
    await finish('d')
    await until(async () => (await logged()).length === 4)
    going.ctrlC()
    expect(await going.ended).toMatchObject({ code: exitCodes.interrupted })
    expect(await logged()).toEqual(['task.done a', 'task.done b', 'task.done c', 'task.done d'])
    expect(await client.subscriptions.list()).toMatchObject([{ url: null, types: ['task.done'] }])
    expect(JSON.parse(await readFile(state, 'utf8'))).toMatchObject({ types: ['task.done'], taskPrefix: '' })
  })

  test('creates one subscription, however often the answer is lost', async () => {
    const { url, client, args } = await scene()
    await client.subscriptions.create({ types: ['task.done'] })
    let losses = 0
    const { url: flaky } = await localServer(async (request, response) => {
      const body = await text(request)
      const { method = '', headers } = request
      const sent = body === '' ? {} : { body, headers: { 'content-type': headers['content-type'] ?? '' } }
      const answer = await fetch(`${url}${request.url}`, { method, ...sent })
      const said = await answer.text()
      if (method === 'POST' && losses < 2) {
        losses += 1
        response.destroy()
      } else response.writeHead(answer.status).end(said)
    })
    const { code } = await baton([...args('--once'), '--', 'true'], { url: flaky })
    expect({ code, losses }).toEqual({ code: 0, losses: 1 })
    expect(await client.subscriptions.list()).toHaveLength(2)
  })

  test('passes the event to the command on stdin', async () => {
    const { url, finish, args, log } = await scene()
    await baton([...args('--once'), '--', 'true'], { url })
    await finish('a')
    await baton([...args('--once'), '--', 'sh', '-c', `cat > ${log}`], { url })
    expect(JSON.parse(await readFile(log, 'utf8'))).toMatchObject({
      specversion: '1.0',
      type: 'task.done',
      subject: 'a',
      data: { partitions: { done: 1 } },
    })
  })

  test('ends if the command fails, and starts again with the same event', async () => {
    const { url, finish, args, append, logged } = await scene()
    await baton([...args('--once'), '--', 'true'], { url })
    for (const task of ['a', 'b']) await finish(task)
    const failed = await baton([...args('--once'), '--', 'sh', '-c', 'exit 3'], { url })
    expect(failed.code).toBe(exitCodes.refused)
    expect(failed.stderr).toContain('the command for task.done of a failed: exit code 3')
    const missing = await baton([...args('--once'), '--', './no-such-program'], { url })
    expect([missing.code, missing.stderr]).toEqual([exitCodes.refused, expect.stringContaining('ENOENT')])
    const going = await baton([...args('--once', '--keep-going'), '--', 'sh', '-c', `${append}; exit 1`], {
      url,
    })
    expect(going.code).toBe(exitCodes.refused)
    expect(await logged()).toEqual(['task.done a', 'task.done b'])
    expect(await baton([...args('--once'), '--', 'false'], { url })).toMatchObject({ code: 0 })
  })

  test('does not repeat an event whose command finishes after a SIGTERM', async () => {
    const { url, finish, args, append, logged } = await scene()
    await baton([...args('--once'), '--', 'true'], { url })
    for (const task of ['a', 'b']) await finish(task)
    const slow = startBaton([...args(), '--', 'sh', '-c', `trap '' TERM; ${append}; sleep 0.5`], { url })
    await until(async () => (await logged()).length === 1)
    slow.process.kill('SIGTERM')
    expect(await slow.ended).toMatchObject({ code: exitCodes.terminated })
    await baton([...args('--once'), '--', 'sh', '-c', append], { url })
    expect(await logged()).toEqual(['task.done a', 'task.done b'])
  })

  test('reports deleted events once, not at every poll', async () => {
    const { state, args } = await scene()
    let polls = 0
    const { url } = await localServer((_, response) => {
      polls += 1
      response.end(JSON.stringify({ events: [], next: '1', missed: true }))
    })
    const stored = { url, types: ['task.done'], taskPrefix: '', subscription: 'sub_1', after: '1' }
    await writeFile(state, JSON.stringify(stored))
    const going = startBaton([...args(), '--', 'true'], { url })
    await until(() => polls >= 3)
    going.ctrlC()
    const { stderr } = await going.ended
    expect(stderr.match(/retention deleted events/g)).toHaveLength(1)
  })

  test('names a state file that cannot be written, and leaves no subscription', async () => {
    const { url, client, state } = await scene()
    const missing = join(`${state}-missing`, 'state.json')
    const { code, stderr } = await baton(['on', 'task.done', '--state', missing, '--', 'true'], { url })
    expect([code, stderr]).toEqual([exitCodes.refused, `baton: ${missing} cannot be written (ENOENT)\n`])
    expect(await client.subscriptions.list()).toEqual([])
  })

  test('reports invalid arguments', async () => {
    const { url, args, state, client } = await scene()
    const usage = async (line: readonly string[], text: string) => {
      const { code, stderr } = await baton(line, { url })
      expect([code, stderr]).toEqual([exitCodes.usage, expect.stringContaining(text)])
    }
    await usage(['on', 'task.ended', '--', 'true'], '"task.ended" is not an event')
    await usage(args('--once'), 'on requires a command')
    await usage(['on', '--', 'true'], 'on requires EVENT')
    await baton([...args('--once'), '--', 'true'], { url })
    await usage(
      ['on', 'task.stalled', '--state', state, '--once', '--', 'true'],
      'belongs to task.done; name another file with --state',
    )
    const [subscription] = await client.subscriptions.list()
    await client.subscriptions.remove(subscription?.id ?? '')
    await usage([...args('--once'), '--', 'true'], 'remove that file to create a new subscription')
    await writeFile(state, 'something else')
    await usage([...args('--once'), '--', 'true'], 'is not a state file of baton on')
  })
})
