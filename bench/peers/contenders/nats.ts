import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type CleanUp, freePort, temporaryFolder } from '../../harness/clean-up.ts'
import { startServer } from '../../harness/server-process.ts'
import { libraryContenders } from '../library-contender.ts'
import type { Peer } from '../peer.ts'
import { installed } from '../servers/installed.ts'

async function startNats(cleanUp: CleanUp) {
  const version = installed('nats-server', '--version', 'nats-server').replace('nats-server: v', '')
  const port = await freePort()
  const folder = temporaryFolder('nats', cleanUp)
  const file = join(folder, 'nats.conf')
  const configure = (storage: string) =>
    writeFileSync(file, `listen: "127.0.0.1:${port}"\njetstream { store_dir: "${folder}", ${storage} }\n`)
  // Only newer versions can sync every write. Older ones refuse the setting and sync every two minutes.
  configure('sync_interval: always')
  const syncsAlways = accepted(file)
  if (!syncsAlways) configure('max_file_store: 16GB')
  const server = await startServer(
    { name: 'NATS', command: 'nats-server', args: ['-c', file], readyPattern: /Server is ready/ },
    cleanUp,
  )
  return { version, port, pid: server.pid, syncsAlways }
}

function accepted(file: string): boolean {
  try {
    execFileSync('nats-server', ['-t', '-c', file], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

export const nats: Peer = {
  name: 'nats',
  async start(bench) {
    const server = await startNats(bench.cleanUp)
    const name = `NATS JetStream ${server.version}`
    const storage = server.syncsAlways
      ? 'file storage, sync_interval always'
      : 'file storage; this version cannot sync every write'
    const favoured = server.syncsAlways
      ? 'one connection for all consumers'
      : 'an acknowledgement is not on disk for up to two minutes; one connection for all consumers'
    const hurt = 'no levels within a stream'
    return libraryContenders(bench, {
      connect: { peer: 'nats', to: { port: server.port } },
      watched: [server.pid],
      ways: [
        {
          way: 'one by one',
          label: `${name}, next and confirmed ack`,
          work: 'one by one',
          setting: `work-queue stream, ${storage}`,
          favoured,
          hurt,
          firstGuess: 10_000,
        },
        {
          way: 'consume, confirmed',
          label: `${name}, consume, confirmed acks`,
          work: 'batches',
          setting: `consume with ${bench.consumers * bench.batch} buffered, ${storage}`,
          favoured,
          hurt,
          firstGuess: 25_000,
        },
        {
          way: 'consume',
          label: `${name}, consume`,
          work: 'batches',
          setting: `consume with ${bench.consumers * bench.batch} buffered, ${storage}`,
          favoured: `acks are sent, not confirmed: a lost one is delivered again; ${favoured}`,
          hurt,
          firstGuess: 60_000,
        },
      ],
    })
  },
}
