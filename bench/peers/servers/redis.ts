import type { CleanUp } from '../../harness/clean-up.ts'
import { freePort } from '../../harness/free-port.ts'
import { startServer } from '../../harness/server-process.ts'
import { temporaryFolder } from '../../harness/temporary-folder.ts'
import { installed } from './installed.ts'

export type AppendFsync = 'always' | 'everysec'

export async function startRedis(appendfsync: AppendFsync, cleanUp: CleanUp) {
  const version = /v=(\S+)/.exec(installed('redis-server', '--version', 'redis-server'))?.[1] ?? ''
  const port = await freePort()
  const settings = {
    bind: '127.0.0.1',
    port: String(port),
    dir: temporaryFolder('redis', cleanUp),
    appendonly: 'yes',
    appendfsync,
    'maxmemory-policy': 'noeviction',
    save: '',
  }
  const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value])
  const server = await startServer(
    { name: 'Redis', command: 'redis-server', args, readyPattern: /Ready to accept connections/ },
    cleanUp,
  )
  return { version, port, pid: server.pid }
}
