import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openSqliteDisk } from '../../src/disk/sqlite/sqlite-disk.ts'
import type { DiskHarness } from './conformance/harness.ts'
import { describeDisk } from './conformance/index.ts'

/**
 * The embedded disk in its own folder. After a crash it is opened on a copy of the files as they were before
 * a close.
 */
const sqliteHarness: DiskHarness = {
  name: 'SQLite',
  async create() {
    const folder = await mkdtemp(join(tmpdir(), 'baton-disk-'))
    let life = 0
    const data = () => join(folder, `life-${life}`)
    let disk = await openSqliteDisk({ folder: data() })
    return {
      get disk() {
        return disk
      },
      async crash() {
        const before = { disk, folder: data() }
        life += 1
        for (const file of ['baton.db', 'baton.db-wal'])
          await cp(join(before.folder, file), join(data(), file))
        await before.disk.close()
        disk = await openSqliteDisk({ folder: data() })
      },
      async dispose() {
        await disk.close()
        await rm(folder, { recursive: true, force: true })
      },
    }
  },
}

describeDisk(sqliteHarness)
