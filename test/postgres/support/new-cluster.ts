import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chown, mkdtemp, rename, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const execute = promisify(execFile)

export interface Owner {
  readonly uid?: number
  readonly gid?: number
}

/**
 * The files of a server that was never started. They are created once for all tests and then copied, which is
 * much faster. They are renamed to their final name only when they are complete, since test files run in
 * parallel.
 */
export async function makeCluster(
  data: string,
  { initdb, owner }: { readonly initdb: string; readonly owner: Owner },
): Promise<void> {
  const { stdout } = await execute(initdb, ['--version'])
  const version = stdout.replaceAll(/[^\d.]/g, '')
  const folder = join(tmpdir(), `baton-postgres-${version}-${owner.uid ?? process.getuid?.() ?? 'own'}`)
  if (!existsSync(folder)) {
    const being = await mkdtemp(`${folder}-`)
    if (owner.uid !== undefined && owner.gid !== undefined) await chown(being, owner.uid, owner.gid)
    const flags = ['-U', 'postgres', '--auth=trust', '--encoding=UTF8', '--locale=C', '--no-sync']
    await execute(initdb, ['-D', join(being, 'data'), ...flags], owner)
    await rename(being, folder).catch(() => rm(being, { recursive: true, force: true }))
  }
  await execute('cp', ['-a', join(folder, 'data'), data], owner)
}
