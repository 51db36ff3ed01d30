import { open, writeFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { ServiceProcess } from '../../../test/support/service-process.ts'
import { testFolder } from '../../../test/support/test-folder.ts'
import { version } from '../src/version.ts'
import { pullBytes, RawConnection } from './support/raw-connection.ts'
import { descriptor } from './support/test-app.ts'

const orders = JSON.stringify([descriptor('orders', 0, 1)])
const callBackHead = `POST /call-back HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${orders.length}\r\n\r\n`

describe('starting', () => {
  test('prints one line with the URL and its base path, and answers there', async () => {
    const service = await ServiceProcess.started(['--base-path', '/baton/'])
    expect(service.stdout).toMatch(/^Baton listening on http:\/\/127\.0\.0\.1:\d+\/baton\n$/)
    expect((await fetch(`${service.url}/readyz`)).status).toBe(200)
  })

  test('logs its configuration: the data, the delivery mode, tokens, and the settings that were changed', async () => {
    const data = await testFolder()
    const service = await ServiceProcess.started(['--delivery', 'at-most-once'], relative('.', data))
    await service.logged('accepting requests')
    expect(service.logLines).toContainEqual(
      expect.objectContaining({
        msg: 'accepting requests',
        url: service.url,
        data,
        delivery: 'at-most-once',
        tokens: false,
        settings: expect.objectContaining({ delivery: 'at-most-once', data: relative('.', data) }),
      }),
    )
  })

  test('listens on the IPv6 loopback if configured', async () => {
    const service = await ServiceProcess.started(['--host', '::1'])
    expect(service.url).toMatch(/^http:\/\/\[::1\]:\d+$/)
    expect((await fetch(`${service.url}/pull`)).status).toBe(200)
  })

  test('by npm start works, and a SIGTERM to it reaches the service', async () => {
    const service = ServiceProcess.npmStart(['--port', '0', '--data', await testFolder()])
    await service.listening()
    expect((await fetch(`${service.url}/livez`)).status).toBe(200)
    service.signal('SIGTERM')
    await service.exited
    await expect(fetch(`${service.url}/livez`)).rejects.toThrow()
    expect(service.stderr).toContain('shutting down')
  })
})

describe('informational flags', () => {
  test('--help prints the settings', async () => {
    const service = ServiceProcess.run(['--help'])
    expect(await service.exited).toMatchObject({ code: 0 })
    expect(service.stdout).toContain('BATON_LEASE_SECONDS')
  })

  test('--version prints the version', async () => {
    const service = ServiceProcess.run(['--version'])
    expect(await service.exited).toMatchObject({ code: 0 })
    expect(service.stdout).toBe(`${version}\n`)
  })
})

describe('a failed start', () => {
  async function refusal(args: string[]) {
    const service = ServiceProcess.run(args)
    const { code } = await service.exited
    return { code, stdout: service.stdout, stderr: service.stderr }
  }

  test.each<[string, string[], number, string]>([
    ['an unknown flag', ['--prot', '1'], 2, 'did you mean --port?'],
    ['a bad value', ['--port', 'x'], 1, '--port must be an integer'],
    [
      'a tokens file that is missing',
      ['--tokens-file', '/nowhere/t.json'],
      1,
      '/nowhere/t.json cannot be read',
    ],
    [
      'a host that is not of this machine',
      ['--host', '192.0.2.1', '--allow-anonymous'],
      1,
      'cannot listen on',
    ],
    [
      'an unknown host',
      ['--host', 'nowhere.invalid', '--allow-anonymous'],
      1,
      'cannot listen on nowhere.invalid: the host is unknown',
    ],
  ])('because of %s is explained in one line', async (_, args, code, said) => {
    const folder = await testFolder()
    const refused = await refusal(['--data', folder, ...args])
    expect(refused.code).toBe(code)
    expect(refused.stdout).toBe('')
    expect(refused.stderr).toMatch(/^baton: [^\n]+\n$/)
    expect(refused.stderr).toContain(said)
  })

  test('because the port is taken says so in one line', async () => {
    const first = await ServiceProcess.started()
    const refused = await refusal(['--port', String(first.port), '--data', await testFolder()])
    expect(refused.code).toBe(1)
    expect(refused.stderr).toBe(
      `baton: cannot listen on 127.0.0.1:${first.port}: another process listens on this port; choose another --port\n`,
    )
  })

  test('because the data folder is taken says so in one line', async () => {
    const data = await testFolder()
    await ServiceProcess.started([], data)
    const refused = await refusal(['--port', '0', '--data', data])
    expect(refused.code).toBe(1)
    expect(refused.stderr).toMatch(/^baton: the data folder [^\n]+ is in use by another Baton[^\n]*\n$/)
  })

  test.runIf(process.platform === 'linux')('because no folder can be created ends the process', async () => {
    const refused = await refusal(['--port', '0', '--data', '/proc/baton/data'])
    expect(refused.code).toBe(1)
    expect(refused.stderr).toMatch(/^baton: the data folder [^\n]+ cannot be used[^\n]*\n$/)
  })
})

/** Both are read at once: when the first is answered, the second is in progress. */
async function begun(service: ServiceProcess, request: string): Promise<RawConnection> {
  const client = await RawConnection.open(service.port)
  client.send(`GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n${request}`)
  await client.answer()
  return client
}

test.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)(
  'on %s, waiting pulls are answered empty, the log says how long it took, and the process ends with 0',
  async (signal) => {
    const service = await ServiceProcess.started()
    const client = await begun(service, pullBytes({ Prefer: 'wait=60' }))
    service.signal(signal)
    const answer = await client.answer()
    expect([answer.status, answer.body]).toEqual([200, { partitions: [] }])
    expect(answer.headers['connection']).toBe('close')
    expect(await service.exited).toEqual({ code: 0, signal: null })
    expect(service.logLines.at(-1)).toMatchObject({ msg: 'stopped', millis: expect.any(Number) })
  },
)

// A closing terminal sends SIGHUP more than once; a second SIGTERM or SIGINT ends the process at once.
test.each([
  ['SIGTERM', ['SIGTERM']],
  ['SIGHUP, however often,', ['SIGHUP', 'SIGHUP']],
] as const)(
  'on %s a request in progress finishes, idle connections are closed, and what was stored is there at the next start',
  async (_, signals) => {
    const data = await testFolder()
    const service = await ServiceProcess.started([], data)
    const idle = await RawConnection.open(service.port)
    idle.send(pullBytes())
    await idle.answer()
    const busy = await begun(service, callBackHead + orders.slice(0, 10))
    for (const signal of signals) {
      service.signal(signal)
      await service.logged('shutting down')
    }
    await idle.closed()
    const probe = await fetch(`${service.url}/readyz`)
    expect([probe.status, await probe.json()]).toMatchObject([503, { code: 'shutting_down' }])
    busy.send(orders.slice(10))
    expect((await busy.answer()).body).toMatchObject({ accepted: 1 })
    expect(await service.exited).toEqual({ code: 0, signal: null })
    const again = await ServiceProcess.started([], data)
    expect(await (await fetch(`${again.url}/pull`)).json()).toMatchObject({
      partitions: [{ taskId: 'orders' }],
    })
  },
)

describe.each(['SIGTERM', 'SIGINT'] as const)('on %s', (signal) => {
  test('a second signal ends the process at once', async () => {
    const service = await ServiceProcess.started()
    await begun(service, callBackHead)
    service.signal(signal)
    await service.logged('shutting down')
    service.signal(signal)
    expect(await service.exited).toEqual({ code: signal === 'SIGINT' ? 130 : 143, signal: null })
  })
})

describe('the log', () => {
  test.runIf(process.platform === 'linux')('does not end the service if it cannot be written', async () => {
    const full = await open('/dev/full', 'w')
    onTestFinished(() => full.close())
    const service = ServiceProcess.loggingTo(full.fd, ['--port', '0', '--data', await testFolder()])
    await service.listening()
    expect((await fetch(`${service.url}/livez`)).status).toBe(200)
    service.signal('SIGHUP')
    expect(await service.exited).toEqual({ code: 0, signal: null })
  })

  test('has each request if configured, and never a token', async () => {
    const folder = await testFolder()
    const tokensFile = join(folder, 'tokens.json')
    await writeFile(
      tokensFile,
      JSON.stringify({ tokens: [{ name: 'w', token: 'very-secret-k7Q2xZr9TbW4', roles: ['worker'] }] }),
    )
    const service = await ServiceProcess.started(['--log-level', 'trace', '--tokens-file', tokensFile])
    const status = async (token: string) =>
      (await fetch(`${service.url}/pull`, { headers: { authorization: `Bearer ${token}` } })).status
    expect([await status('very-secret-k7Q2xZr9TbW4'), await status('wrong-secret')]).toEqual([200, 401])
    service.signal('SIGTERM')
    await service.exited
    const lines = service.stderr
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(lines).toContainEqual(expect.objectContaining({ method: 'GET', url: '/pull', status: 200 }))
    expect(service.stderr).not.toContain('secret')
  })
})
