import { chmod, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Webhook } from 'standardwebhooks'
import { describe, expect, onTestFinished, test } from 'vitest'
import { quiet } from '../../../../test/support/quiet-log.ts'
import { testFolder } from '../../../../test/support/test-folder.ts'
import { until } from '../../../../test/support/until.ts'
import { SettingsError } from '../../src/settings-files.ts'
import { AddressRule } from '../../src/webhooks/address-rule.ts'
import { readSubscriptionsFile } from '../../src/webhooks/subscriptions-file.ts'
import { descriptor, TestApp } from '../support/test-app.ts'
import { Receiver } from './support/receiver.ts'

const secretNamed = (word: string): string => `whsec_${Buffer.from(word.padEnd(32, '.')).toString('base64')}`

async function written(content: unknown): Promise<string> {
  const path = join(await testFolder(), 'subscriptions.json')
  await replace(path, content)
  return path
}

/** Written to another file and renamed, as deployments do. */
async function replace(path: string, content: unknown): Promise<void> {
  const text = typeof content === 'string' ? content : JSON.stringify(content)
  await writeFile(`${path}.new`, text, { mode: 0o600 })
  await rename(`${path}.new`, path)
}

const read = (path: string, env: Record<string, string> = {}) =>
  readSubscriptionsFile(path, { rule: new AddressRule([]), env })

function linesOf(path: string): readonly string[] {
  try {
    read(path)
  } catch (error) {
    if (error instanceof SettingsError) return error.lines
    throw error
  }
  throw new Error('nothing was found wrong')
}

const one = { name: 'pipeline', url: 'https://pipeline.example/hooks', secret: secretNamed('a') }

describe('a subscriptions file', () => {
  test('has secrets, or names files or variables that have them', async () => {
    const path = await written({
      subscriptions: [
        one,
        {
          name: 'by-file',
          url: one.url,
          secretFile: 'pipeline.secret',
          types: ['task.stalled', 'task.done'],
        },
        { name: 'by-variable', url: one.url, secretEnv: 'HOOK_SECRET', taskPrefix: 'orders-' },
      ],
    })
    await writeFile(join(path, '..', 'pipeline.secret'), `${secretNamed('b')}\n`)
    const { value, warnings } = read(path, { HOOK_SECRET: secretNamed('c') })
    expect(warnings).toEqual([])
    const all = [
      'task.done',
      'task.stalled',
      'task.cancelled',
      'task.paused',
      'level.done',
      'partition.parked',
    ]
    expect(value).toEqual([
      { ...one, types: all, taskPrefix: '' },
      {
        ...one,
        name: 'by-file',
        types: ['task.done', 'task.stalled'],
        taskPrefix: '',
        secret: secretNamed('b'),
      },
      { ...one, name: 'by-variable', types: all, taskPrefix: 'orders-', secret: secretNamed('c') },
    ])
  })

  test('with errors is refused with the position of each, without its content', async () => {
    const path = await written({
      subscriptions: [
        { ...one, name: 'two words', types: ['task.ended'], sekret: 'x' },
        { ...one, secret: 'whsec_short' },
        { ...one, url: 'http://10.0.0.1/', secretFile: 'a' },
        { name: 'a', url: 'ftp://a.example/', secretEnv: 'NOT_SET' },
        { name: 'b', url: one.url, secretFile: 'nowhere' },
      ],
    })
    const lines = linesOf(path)
    const form =
      '{"subscriptions":[{"name","url","types"?:[…],"taskPrefix"?,"secret" or "secretFile" or "secretEnv"}]}'
    expect(lines).toEqual(
      [
        `does not have the form ${form}: see /subscriptions/0, which must have no fields except name, url, types, taskPrefix, secret, secretFile, secretEnv`,
        'is invalid: see /subscriptions/0/name, which must be 1 to 100 letters, digits, dots, hyphens or underscores',
        'is invalid: see /subscriptions/0/types/0, which must be one of task.done, task.stalled, task.cancelled, task.paused, level.done, partition.parked',
        'is invalid at /subscriptions/1/secret, which must be whsec_ followed by 24 to 64 bytes in base64',
        'is invalid at /subscriptions/2/name, which is also the name of another subscription',
        'is invalid at /subscriptions/2/url, which is not on the public internet; an operator can allow its network with --webhook-networks',
        'is invalid at /subscriptions/2, which must have exactly one of secret, secretFile and secretEnv',
        'is invalid at /subscriptions/3/url, which must be a URL that begins with http:// or https://',
        'is invalid at /subscriptions/3/secretEnv, which names a variable that is not set',
        'is invalid at /subscriptions/4/secretFile, which names a file that cannot be read (ENOENT)',
      ].map((fault) => `the subscriptions file ${path} ${fault}`),
    )
    expect(lines.join()).not.toMatch(/whsec_short|sekret/)
  })

  test.each([
    ['nothing that is JSON', 'whsec_x', 'is not JSON'],
    ['no list', {}, 'does not have the form'],
    ['too many', { subscriptions: Array(101).fill(one) }, '/subscriptions, which'],
  ])('with %s is refused', async (_, content, said) => {
    const message = linesOf(await written(content)).join()
    expect(message).toContain(said)
    expect(message).not.toContain('whsec_x')
  })

  test('with secrets in clear that all users can read causes a warning', async () => {
    const path = await written({ subscriptions: [one] })
    await chmod(path, 0o644)
    expect(read(path).warnings).toEqual([
      `the subscriptions file ${path} is readable by all users of the machine: run chmod 600`,
    ])
  })
})

describe('a service with a subscriptions file', () => {
  /** Also returns its log. */
  async function started(path: string) {
    const logged: string[] = []
    const note = (fields: object, text: string) => void logged.push(JSON.stringify([fields, text]))
    const log = { ...quiet, info: note, warn: note, error: note }
    const config = {
      subscriptionsFile: path,
      webhookNetworks: ['127.0.0.0/8'],
      webhookBackoffSeconds: 0.01,
    }
    return { baton: await TestApp.open(config, { log }), logged }
  }

  async function finish(baton: TestApp, taskId: string): Promise<void> {
    await baton.callBack(descriptor(taskId, 0, 0))
    await baton.settle(await baton.pull())
  }

  const list = async (baton: TestApp) => (await baton.get('/subscriptions')).body.subscriptions

  test('notifies its subscriptions from the first request on, and they can only be changed there', async () => {
    const receiver = await Receiver.start()
    const path = await written({ subscriptions: [{ ...one, url: receiver.url, types: ['task.done'] }] })
    const { baton, logged } = await started(path)
    await finish(baton, 'a')
    const [found] = await list(baton)
    expect(found).toMatchObject({
      name: 'pipeline',
      url: receiver.url,
      types: ['task.done'],
      state: 'active',
    })
    await until(() => receiver.taken.length === 1)
    receiver.expectSigned(secretNamed('a'))
    for (const [method, place] of [
      ['DELETE', ''],
      ['POST', '/rotate-secret'],
    ] as const) {
      const { status, body } = await baton.ask(method, `/subscriptions/${found.id}${place}`)
      expect([status, body.code, body.detail]).toEqual([
        409,
        'subscription_in_file',
        'the subscription is defined in the subscriptions file as "pipeline"; change it there',
      ])
    }
    expect((await baton.post(`/subscriptions/${found.id}/enable`)).status).toBe(200)
    expect(JSON.stringify(logged)).not.toContain('whsec_')
  })

  test('reads it again when it or a secret file changes, and keeps the old one if it cannot be used', async () => {
    const [first, second] = [await Receiver.start(), await Receiver.start()]
    const entry = (url: string) => ({ name: 'pipeline', url, types: ['task.done'], secretFile: 'secret' })
    const path = await written('')
    const secretPath = join(path, '..', 'secret')
    await writeFile(secretPath, secretNamed('a'))
    await replace(path, { subscriptions: [entry(first.url)] })
    const { baton, logged } = await started(path)
    const saw = (text: string) => until(() => logged.some((line) => line.includes(text)))

    await replace(path, { subscriptions: [{ ...entry(first.url), secretFile: 'nowhere' }] })
    await saw('cannot be read (ENOENT)')
    await finish(baton, 'a')
    await until(() => first.taken.length === 1)

    await replace(path, { subscriptions: [entry(second.url), { ...entry(first.url), name: 'other' }] })
    await saw('new: other; changed: pipeline')
    await until(async () => (await list(baton)).length === 2)
    await finish(baton, 'b')
    await until(() => first.taken.length === 2 && second.taken.length === 1)

    await writeFile(secretPath, secretNamed('b'))
    await saw('changed: pipeline, other')
    // A delivery in progress may have only the old signature.
    let tasks = 0
    const signed = await until(async () => {
      tasks += 1
      await finish(baton, `c${tasks}`)
      return second.taken.find(({ headers }) => String(headers['webhook-signature']).includes(' '))
    })
    for (const word of ['a', 'b'])
      new Webhook(secretNamed(word)).verify(signed.text, signed.headers as Record<string, string>)

    await replace(path, { subscriptions: [] })
    await until(async () => (await list(baton)).length === 0)
    expect(JSON.stringify(logged)).not.toContain('whsec_')
  })

  test('that is started without the file keeps them, and then they can be removed', async () => {
    const path = await written({ subscriptions: [one] })
    const data = await testFolder()
    const before = await TestApp.open({ subscriptionsFile: path, data })
    const [found] = await list(before)
    await before.app.close()
    const baton = await TestApp.open({ data })
    onTestFinished(() => baton.app.close())
    expect(await list(baton)).toMatchObject([{ name: 'pipeline', id: found.id }])
    expect((await baton.ask('DELETE', `/subscriptions/${found.id}`)).status).toBe(200)
    expect(await list(baton)).toEqual([])
  })
})
