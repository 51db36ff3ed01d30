import { type CleanUp, freePort, temporaryFolder } from '../../harness/clean-up.ts'
import { startServer } from '../../harness/server-process.ts'
import { packageVersion } from '../../report/machine.ts'
import { libraryContenders } from '../library-contender.ts'
import type { Peer, PeerContender, PeersBench } from '../peer.ts'
import { installed } from '../servers/installed.ts'

type AppendFsync = 'always' | 'everysec'

async function startRedis(appendfsync: AppendFsync, cleanUp: CleanUp) {
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

const FAVOURED = 'finishing one fetches the next in the same script; finished work is removed; all in memory'

async function onRedis(
  bench: PeersBench,
  appendfsync: AppendFsync,
  about: { way: string; favoured: string },
): Promise<PeerContender[]> {
  const redis = await startRedis(appendfsync, bench.cleanUp)
  const version = packageVersion('bullmq', import.meta.url)
  return libraryContenders(bench, {
    connect: { peer: 'bullmq', to: { port: redis.port } },
    watched: [redis.pid],
    ways: [
      {
        ...about,
        label: `BullMQ ${version} on Redis ${redis.version}, fsync ${appendfsync}`,
        work: 'one by one',
        setting: `appendonly yes, appendfsync ${appendfsync}; one Worker, concurrency ${bench.consumers}`,
        hurt: 'no batches without its paid edition',
        firstGuess: 8_000,
      },
    ],
  })
}

/**
 * Redis' default is also measured, as a separate contender: a crash of the machine may lose writes it has
 * confirmed.
 */
export const bullMq: Peer = {
  name: 'bullmq',
  async start(bench) {
    return [
      ...(await onRedis(bench, 'always', { way: 'one by one', favoured: FAVOURED })),
      ...(await onRedis(bench, 'everysec', {
        way: 'everysec',
        favoured: `what was confirmed in the last second is not on disk; ${FAVOURED}`,
      })),
    ]
  },
}
