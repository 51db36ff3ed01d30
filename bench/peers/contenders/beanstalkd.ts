import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { type CleanUp, freePort, temporaryFolder } from '../../harness/clean-up.ts'
import { startServer } from '../../harness/server-process.ts'
import { libraryContenders } from '../library-contender.ts'
import type { Peer } from '../peer.ts'
import { installed } from '../servers/installed.ts'

async function startBeanstalkd(cleanUp: CleanUp) {
  const version = installed('beanstalkd', '-v', 'beanstalkd').replace('beanstalkd ', '')
  const port = await freePort()
  const folder = temporaryFolder('beanstalkd', cleanUp)
  const server = await startServer(
    {
      name: 'beanstalkd',
      command: 'beanstalkd',
      // One -V makes it print when it listens; -f 0 syncs every write.
      args: ['-l', '127.0.0.1', '-p', String(port), '-b', folder, '-f', '0', '-V'],
      readyPattern: /bind .*|pid \d+/,
    },
    cleanUp,
  )
  await reachable(port)
  return { version, port, pid: server.pid }
}

/** It prints its process id before it listens. */
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

export const beanstalkd: Peer = {
  name: 'beanstalkd',
  async start(bench) {
    const server = await startBeanstalkd(bench.cleanUp)
    const about = {
      setting: '-b, -f 0 (fsync on every write); a connection per consumer',
      hurt: 'one thread syncs each write for itself; no batches',
      firstGuess: 15_000,
    }
    const favoured =
      'C, a protocol of short lines, hand-written client; a reservation is not written to its log'
    return libraryContenders(bench, {
      connect: { peer: 'beanstalkd', to: { port: server.port } },
      watched: [server.pid],
      ways: [
        {
          ...about,
          favoured,
          way: 'one by one',
          label: `beanstalkd ${server.version}`,
          work: 'one by one',
        },
        {
          ...about,
          favoured: `${favoured}; delete and reserve in one write`,
          way: 'pipelined',
          label: `beanstalkd ${server.version}, pipelined`,
          work: 'one exchange',
        },
      ],
    })
  },
}
