import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { CleanUp } from '../../harness/clean-up.ts'
import { freePort } from '../../harness/free-port.ts'
import { startServer } from '../../harness/server-process.ts'
import { temporaryFolder } from '../../harness/temporary-folder.ts'
import { installed } from './installed.ts'

export async function startBeanstalkd(cleanUp: CleanUp) {
  const version = installed('beanstalkd', '-v', 'beanstalkd').replace('beanstalkd ', '')
  const port = await freePort()
  const folder = temporaryFolder('beanstalkd', cleanUp)
  const server = await startServer(
    {
      name: 'beanstalkd',
      command: 'beanstalkd',
      // One V makes it say that it listens; -f 0 syncs every write.
      args: ['-l', '127.0.0.1', '-p', String(port), '-b', folder, '-f', '0', '-V'],
      readyPattern: /bind .*|pid \d+/,
    },
    cleanUp,
  )
  await reachable(port)
  return { version, port, pid: server.pid }
}

/** It says its process id before it listens. */
async function reachable(port: number): Promise<void> {
  for (let attempt = 0; attempt < 100; attempt++) {
    const open = await new Promise<boolean>((resolve) => {
      const socket = connect({ host: '127.0.0.1', port })
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
      socket.once('connect', () => socket.destroy())
    })
    if (open) return
    await sleep(50)
  }
  throw new Error(`nothing listens on port ${port}`)
}
