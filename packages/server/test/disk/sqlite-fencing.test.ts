import { expect, test } from 'vitest'
import type { Disk } from '../../src/handoff/disk.ts'
import { StoreUnavailable } from '../../src/handoff/store.ts'
import { MemoryDatabase } from '../support/memory-database.ts'
import { rowChanges, rows } from './conformance/builders.ts'

const entry = (number: number) => ({ number, body: `entry ${number}`, newRows: [], newKeys: [] })

const writes: Readonly<Record<string, (disk: Disk, last: number) => Promise<unknown>>> = {
  append: (disk, last) => disk.append(entry(last + 1)),
  flush: (disk, last) => disk.flush(rowChanges(), last),
  stage: (disk) => disk.stage(rows(1, 1, 3)),
  unstage: (disk) => disk.unstage({ first: 1, last: 3 }),
  forgetThroughput: (disk) =>
    disk.forgetThroughput({ before: { minute: 1, hour: 1 }, most: null, limit: 10 }),
}

/** With a row to forget. */
function newDatabase(): MemoryDatabase {
  const database = new MemoryDatabase()
  database.db.exec("INSERT INTO throughput VALUES (1, 'minute', 0, 0, 1, 1)")
  return database
}

test.each(Object.keys(writes))('%s is refused after another process took over', async (name) => {
  const database = newDatabase()
  const write = (disk: Disk, last: number) => writes[name]?.(disk, last)
  const [first, second] = [database.disk(), database.disk()]
  await first.open()
  await first.append(entry(1))
  await second.open()
  await expect(write(first, 1)).rejects.toThrow(StoreUnavailable)
  await second.append(entry(2))
  await write(second, 2)
  expect((await database.disk().open()).unflushed.slice(0, 2)).toEqual(
    name === 'flush' ? [] : ['entry 1', 'entry 2'],
  )
})

test.each(Object.keys(writes))('%s is refused if an entry or rows before it are lost', async (name) => {
  for (const loss of ['DELETE FROM entry_slot WHERE number = 2', 'UPDATE flushed SET writes = writes - 1']) {
    const database = newDatabase()
    const disk = database.disk()
    await disk.open()
    await disk.append(entry(1))
    await disk.flush(rowChanges(), 1)
    await disk.append(entry(2))
    database.db.exec(loss)
    await expect(writes[name]?.(disk, 2)).rejects.toThrow(StoreUnavailable)
  }
})
