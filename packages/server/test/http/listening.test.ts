import { readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { dial, readUntil } from '../../../../test/support/hostile-client.ts'
import { ServiceProcess } from '../../../../test/support/service-process.ts'
import { testFolder } from '../../../../test/support/test-folder.ts'
import { until } from '../../../../test/support/until.ts'
import { pullBytes } from '../support/raw-connection.ts'

const LISTENING = '0A'

/** The number of sockets that listen on a port, as reported by the system. */
async function listeningOn(port: number): Promise<number> {
  const end = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  const rows = (await readFile('/proc/net/tcp', 'utf8')).split('\n').map((row) => row.trim().split(/\s+/))
  return rows.filter(([, local = '', , state]) => local.endsWith(end) && state === LISTENING).length
}

describe.runIf(process.platform === 'linux')('a service on Linux', () => {
  test('has several sockets on its port, so that one event-loop iteration accepts several connections', async () => {
    const service = await ServiceProcess.started()
    expect(await listeningOn(service.port)).toBe(32)
  })

  test('shares its port with no other service', async () => {
    const { port } = await ServiceProcess.started()
    const other = ServiceProcess.run(['--port', String(port), '--data', await testFolder()])
    expect((await other.exited).code).toBe(1)
    expect(other.stderr).toContain('another process listens on this port; choose another --port')
    expect(await listeningOn(port)).toBe(32)
  })

  test('answers requests in progress on all of them before it ends', async () => {
    const service = await ServiceProcess.started()
    const sockets = await Promise.all(Array.from({ length: 64 }, () => dial(service.port)))
    const answers = sockets.map((socket) => readUntil(socket, (text) => text.includes('{"partitions":[]}')))
    for (const socket of sockets) socket.write(pullBytes({ Host: 'localhost', Prefer: 'wait=60' }))
    await until(async () =>
      (await (await fetch(`${service.url}/metrics`)).text()).includes('baton_waiting_pulls 64\n'),
    )
    service.signal('SIGTERM')
    for (const answer of await Promise.all(answers)) expect(answer).toContain('HTTP/1.1 200')
    expect((await service.exited).code).toBe(0)
    expect(await listeningOn(service.port)).toBe(0)
  })
})
