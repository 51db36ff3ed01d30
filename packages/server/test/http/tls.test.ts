import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { copyFile, readFile, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import type { TLSSocket } from 'node:tls'
import { describe, expect, onTestFinished, test } from 'vitest'
import { certificateFile } from '../../../../test/postgres/support/postgres-server.ts'
import { quiet } from '../../../../test/support/quiet-log.ts'
import { ServiceProcess } from '../../../../test/support/service-process.ts'
import { testFolder } from '../../../../test/support/test-folder.ts'
import { until } from '../../../../test/support/until.ts'
import { baton } from '../../../cli/test/support/baton.ts'
import type { Log } from '../../src/handoff/log.ts'
import { TlsFiles } from '../../src/http/tls.ts'
import { listening, pullBytes, RawConnection } from '../support/raw-connection.ts'
import { descriptors, leaseId, TestApp } from '../support/test-app.ts'

const ca = await readFile(certificateFile('ca.crt'))

async function files(certificate = 'right') {
  const folder = await testFolder()
  const [tlsCert, tlsKey] = [join(folder, 'tls.crt'), join(folder, 'tls.key')]
  await copyFile(certificateFile(`${certificate}.crt`), tlsCert)
  await copyFile(certificateFile('server.key'), tlsKey)
  return { tlsCert, tlsKey }
}

async function secured(log: Log = quiet) {
  const paths = await files()
  const baton = await TestApp.open(paths, { log })
  const port = await listening(baton.app)
  let throughNode = 0
  baton.app.http.server.on('request', () => {
    throughNode += 1
  })
  return { baton, paths, port, throughNode: () => throughNode }
}

const settleBytes = (body: string) =>
  `POST /settle HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`

const otherKey = () =>
  generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'pkcs8', format: 'pem' })

describe('over TLS', () => {
  test('workers are served by the fast path, and everything else by Node, on one connection', async () => {
    const { baton, port, throughNode } = await secured()
    await baton.callBack(...descriptors('orders', 2))
    const client = await RawConnection.openTls(port, { ca })
    client.send(pullBytes())
    const pulled = await client.answer()
    const body = JSON.stringify([{ leaseId: leaseId(pulled.body.partitions[0]), outcome: 'done' }])
    // The head, and its body a moment later.
    const [head = '', rest = ''] = settleBytes(body).split(/(?<=\r\n\r\n)/)
    client.send(head)
    client.send(rest)
    const settled = await client.answer()
    expect(settled.body.settled).toHaveLength(1)
    expect(throughNode()).toBe(0)
    client.send('GET /tasks/orders HTTP/1.1\r\nHost: localhost\r\n\r\n')
    const viewed = await client.answer()
    expect(viewed.body.partitions.done).toBe(1)
    expect(throughNode()).toBe(1)
    for (const { headers } of [pulled, settled, viewed])
      expect(headers).toMatchObject({
        'strict-transport-security': 'max-age=31536000',
        'x-content-type-options': 'nosniff',
      })
  })

  test('a connection beyond those of one address is closed before the handshake', async () => {
    const baton = await TestApp.open({ ...(await files()), maxConnectionsPerAddress: 2 })
    const port = await listening(baton.app)
    const first = await RawConnection.openTls(port, { ca })
    const second = await RawConnection.openTls(port, { ca })
    const third = connect({ host: '127.0.0.1', port })
    third.on('error', () => {})
    await once(third, 'close')
    for (const client of [first, second]) {
      client.send(pullBytes())
      expect((await client.answer()).status).toBe(200)
    }
    first.socket.destroy()
    await until(async () => {
      const again = await RawConnection.openTls(port, { ca }).catch(() => undefined)
      again?.send(pullBytes())
      return (await again?.answer().catch(() => undefined))?.status === 200
    })
  })

  test('a pull waits, and one whose client disconnects takes nothing', async () => {
    const { baton, port } = await secured()
    const gone = await RawConnection.openTls(port, { ca })
    gone.send(pullBytes({ Prefer: 'wait=60' }))
    const waiting = await RawConnection.openTls(port, { ca })
    while (baton.app.handOff.waitingPulls < 1) await new Promise(setImmediate)
    gone.socket.destroy()
    while (baton.app.handOff.waitingPulls > 0) await new Promise(setImmediate)
    waiting.send(pullBytes({ Prefer: 'wait=60' }))
    while (baton.app.handOff.waitingPulls < 1) await new Promise(setImmediate)
    await baton.callBack(...descriptors('orders', 1))
    expect((await waiting.answer()).body.partitions).toHaveLength(1)
  })

  test('a client that half-closes after a request is answered', async () => {
    const { port } = await secured()
    for (const path of ['/livez', '/tasks']) {
      const client = await RawConnection.openTls(port, { ca })
      client.socket.end(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
      expect((await client.answer()).status).toBe(200)
    }
  })

  test('a client with plain HTTP is told so, and a silent one is disconnected when the service closes', async () => {
    const { baton, port } = await secured()
    const plain = await RawConnection.open(port)
    plain.send(pullBytes())
    const refusal = await plain.answer()
    expect([refusal.status, refusal.body.detail]).toEqual([400, expect.stringContaining('https://')])
    await plain.closed()
    const silent = connect({ host: '127.0.0.1', port })
    await once(silent, 'connect')
    silent.on('error', () => {})
    const idle = await RawConnection.openTls(port, { ca })
    idle.send(pullBytes())
    await idle.answer()
    // Until the server knows its connection, it cannot close it.
    await expect.poll(() => connections(baton)).toBe(2)
    const closing = baton.app.close()
    await once(silent, 'close')
    await closing
  })
})

const connections = ({ app }: TestApp) =>
  new Promise((resolve) => app.http.server.getConnections((_, count) => resolve(count)))

describe('certificate files that change', () => {
  const shownBy = async (port: number) => {
    const client = await RawConnection.openTls(port, { ca, checkServerIdentity: () => undefined })
    return (client.socket as TLSSocket).getPeerCertificate().subjectaltname
  }

  test('are used for new connections, and open ones stay', async () => {
    const noted = Promise.withResolvers<unknown>()
    const note = (fields: object) => {
      if ('audit' in fields) noted.resolve(fields)
    }
    const { port, paths } = await secured({ ...quiet, info: note })
    const open = await RawConnection.openTls(port, { ca })
    const before = await shownBy(port)
    await copyFile(certificateFile('other-host.crt'), paths.tlsCert)
    expect(await noted.promise).toMatchObject({ kind: 'reload', action: 'certificate', outcome: 'done' })
    expect(await shownBy(port)).not.toBe(before)
    open.send(pullBytes())
    expect((await open.answer()).status).toBe(200)
  })

  test('and do not belong together leave the previous certificate in use', async () => {
    const logged = Promise.withResolvers<unknown>()
    const { port, paths } = await secured({ ...quiet, error: logged.resolve })
    const before = await shownBy(port)
    await writeFile(paths.tlsKey, otherKey())
    expect(await logged.promise).toEqual({
      faults: [`the key ${paths.tlsKey} does not belong to the certificate ${paths.tlsCert}`],
    })
    expect(await shownBy(port)).toBe(before)
  })
})

describe('certificate files that cannot be used', () => {
  const faultOf = async (change: (paths: { tlsCert: string; tlsKey: string }) => Promise<void>) => {
    const paths = await files()
    await change(paths)
    const { tlsCert: cert, tlsKey: key } = paths
    try {
      new TlsFiles({ cert, key }, quiet).close()
    } catch (error) {
      return (error as Error).message.replaceAll(cert, 'CERT').replaceAll(key, 'KEY')
    }
    return undefined
  }

  test.each([
    [
      'a file that is not a certificate',
      'the certificate CERT is not a certificate in PEM',
      { tlsCert: 'nonsense' },
    ],
    ['a file that is not a key', 'the key KEY is not a private key in PEM', { tlsKey: 'nonsense' }],
    [
      'a key of another certificate',
      'the key KEY does not belong to the certificate CERT',
      { tlsKey: otherKey() },
    ],
    [
      'an encrypted key',
      'the key KEY is encrypted: use an unencrypted key, in a file that only the service can read',
      {
        tlsKey: generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({
          type: 'pkcs8',
          format: 'pem',
          cipher: 'aes-256-cbc',
          passphrase: 'secret',
        }),
      },
    ],
  ])('are reported: %s', async (_, fault, contents) => {
    const change = async (paths: { tlsCert: string; tlsKey: string }) => {
      for (const [name, text] of Object.entries(contents))
        await writeFile(paths[name as keyof typeof paths], text)
    }
    expect(await faultOf(change)).toBe(fault)
  })

  test('do not include an expired certificate, which causes a warning', async () => {
    const { tlsCert: cert, tlsKey: key } = await files('expired')
    const warnings: string[] = []
    const tls = new TlsFiles({ cert, key }, { ...quiet, warn: (_, text) => warnings.push(text) })
    onTestFinished(() => tls.close())
    expect(warnings).toEqual([
      expect.stringMatching(/^the certificate has expired on .+ GMT: clients will refuse it$/),
    ])
    expect([tls.isFor('localhost'), tls.isFor('127.0.0.1'), tls.isFor('other.example')]).toEqual([
      true,
      true,
      false,
    ])
  })
})

test('the service as a process prints its URL, and its clients reach it', async () => {
  const { tlsCert, tlsKey } = await files()
  const service = await ServiceProcess.started(['--tls-cert', tlsCert, '--tls-key', tlsKey])
  expect(service.url).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/)
  const client = await RawConnection.openTls(service.port, { ca })
  client.send(pullBytes())
  expect((await client.answer()).status).toBe(200)
  service.signal('SIGTERM')
  expect(await service.exited).toEqual({ code: 0, signal: null })
})

test('a certificate that is missing ends the start', async () => {
  const { tlsKey } = await files()
  const service = ServiceProcess.run(['--tls-cert', '/nowhere/tls.crt', '--tls-key', tlsKey])
  expect(await service.exited).toMatchObject({ code: 1 })
  expect(service.stderr).toBe('baton: the certificate /nowhere/tls.crt cannot be read (ENOENT)\n')
})

test('the command reaches a service with TLS, with a CA configured in Node', async () => {
  const { tlsCert, tlsKey } = await files()
  const service = await ServiceProcess.started(['--tls-cert', tlsCert, '--tls-key', tlsKey])
  const trusting = await baton(['status', '--json'], {
    url: service.url,
    env: { NODE_EXTRA_CA_CERTS: certificateFile('ca.crt') },
  })
  expect(JSON.parse(trusting.stdout).instances).toHaveLength(1)
  const { code, stderr } = await baton(['status', '--timeout', '0'], { url: service.url })
  expect(code).not.toBe(0)
  expect(stderr).toContain('cannot be reached')
})
