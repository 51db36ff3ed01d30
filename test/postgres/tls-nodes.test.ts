import { readFile } from 'node:fs/promises'
import { type RequestOptions, request } from 'node:https'
import { expect, test } from 'vitest'
import { ServiceProcess } from '../support/service-process.ts'
import { until } from '../support/until.ts'
import { certificateFile, PostgresServer } from './support/postgres-server.ts'

const CA = certificateFile('ca.crt')
const ca = await readFile(CA)
const tls = ['--tls-cert', certificateFile('right.crt'), '--tls-key', certificateFile('server.key')]

function ask(url: string, method: string, body?: unknown): Promise<{ status: number; body: unknown }> {
  const headers = body === undefined ? {} : { 'content-type': 'application/json' }
  const options: RequestOptions = { method, ca, headers, agent: false }
  return new Promise((resolve, reject) => {
    const asked = request(url, options, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (piece: string) => {
        text += piece
      })
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body: JSON.parse(text) }))
    })
    asked.on('error', reject)
    asked.end(body === undefined ? undefined : JSON.stringify(body))
  })
}

test('nodes with TLS forward to each other with a configured CA', async () => {
  const server = await PostgresServer.start()
  const { url: database } = await server.createDatabase()
  const start = async (more: readonly string[], environment: Record<string, string> = {}) => {
    const args = ['--port', '0', '--database-url', database, ...tls, ...more]
    const node = ServiceProcess.run(args, environment)
    await node.listening()
    return node
  }
  const descriptor = (index: number) => ({
    taskId: 'orders',
    computeTableName: 'results.orders',
    partition_name: `orders-0-${index}`,
    record_count: 1,
    priorityLevel: 0,
  })
  /** Both nodes take part: what is called back on one is handed out by the other. */
  const handsOn = async (follower: ServiceProcess, leader: ServiceProcess, index: number) => {
    await follower.logged('this node is a follower')
    expect(follower.logLines.findLast(({ leader }) => leader !== undefined)).toMatchObject({
      leader: leader.url,
    })
    expect(await ask(`${follower.url}/call-back`, 'POST', [descriptor(index)])).toMatchObject({ status: 200 })
    expect(await ask(`${leader.url}/pull`, 'GET')).toMatchObject({
      body: { partitions: [{ partition_name: `orders-0-${index}` }] },
    })
  }
  try {
    const first = await start(['--peer-ca', CA])
    const second = await start([], { NODE_EXTRA_CA_CERTS: CA })
    await handsOn(second, first, 1)
    first.signal('SIGTERM')
    await first.exited
    await until(() => second.stderr.includes('this node is the leader'))
    const third = await start(['--peer-ca', CA])
    await handsOn(third, second, 2)
    for (const node of [third, second]) {
      node.signal('SIGTERM')
      expect(await node.exited).toEqual({ code: 0, signal: null })
      expect(node.stderr).not.toContain('will not accept the certificate')
    }
  } finally {
    await server.dispose()
  }
})

test('a certificate that does not match the URL of the node causes a warning', async () => {
  const server = await PostgresServer.start()
  try {
    const { url: database } = await server.createDatabase()
    const service = ServiceProcess.run(
      ['--port', '0', '--database-url', database, '--peer-url', 'https://north.example:7070', ...tls],
      {},
    )
    await service.logged('other nodes will not accept the certificate: it is not valid for north.example')
    service.signal('SIGTERM')
    await service.exited
  } finally {
    await server.dispose()
  }
})
