import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { CleanUp } from '../../harness/clean-up.ts'
import { freePort } from '../../harness/free-port.ts'
import { startServer } from '../../harness/server-process.ts'
import { temporaryFolder } from '../../harness/temporary-folder.ts'
import { installed } from './installed.ts'

export async function startNats(cleanUp: CleanUp) {
  const version = installed('nats-server', '--version', 'nats-server').replace('nats-server: v', '')
  const port = await freePort()
  const folder = temporaryFolder('nats', cleanUp)
  const file = join(folder, 'nats.conf')
  const configure = (storage: string) =>
    writeFileSync(file, `listen: "127.0.0.1:${port}"\njetstream { store_dir: "${folder}", ${storage} }\n`)
  // Only newer versions can sync every write; older ones refuse the setting and sync every two minutes.
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
