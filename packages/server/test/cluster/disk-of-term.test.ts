import { describe, expect, test } from 'vitest'
import { diskOfTerm } from '../../src/cluster/disk-of-term.ts'
import type { SharedDisk } from '../../src/handoff/disk.ts'
import { StoreUnavailable } from '../../src/handoff/store.ts'
import { entry, noRowChanges, task } from '../disk/postgres/samples.ts'
import { diskDatabases } from '../disk/postgres/support.ts'

const databases = diskDatabases()

async function twoNodes() {
  const database = await databases.create()
  const disk = (nodeId: string) => database.disk({ node: { nodeId, url: `http://${nodeId}` } })
  const [one, two] = [await disk('one'), await disk('two')]
  const led = async (under: SharedDisk, nodeId: string) => {
    const told: string[] = []
    const over = new AbortController()
    const events = {
      opened: (term: string) => told.push(`opened ${term}`),
      lost: () => told.push('lost'),
      over: over.signal,
    }
    return { told, over, disk: diskOfTerm(under, nodeId, await under.readLeaderRow(), events) }
  }
  return { one, two, led }
}

describe('the disk of one term', () => {
  test('is opened by one of two nodes that miss the same leader, and the other yields', async () => {
    const { one, two, led } = await twoNodes()
    const [first, second] = [await led(one, 'one'), await led(two, 'two')]
    const { last } = await first.disk.open()
    await expect(second.disk.open()).rejects.toThrow(StoreUnavailable)
    await first.disk.append(entry(last + 1))
    const { term, leader } = await two.readLeaderRow()
    expect(leader?.nodeId).toBe('one')
    expect(first.told).toEqual([`opened ${term}`])
  })

  test('is opened again after a failure, in another term', async () => {
    const { one, led } = await twoNodes()
    const { told, disk } = await led(one, 'one')
    await disk.open()
    const before = await one.readLeaderRow()
    const { last } = await disk.open()
    await disk.append(entry(last + 1))
    const { term } = await one.readLeaderRow()
    expect(term).not.toBe(before.term)
    expect(told).toEqual([`opened ${before.term}`, `opened ${term}`])
  })

  test('ends when another node has taken over: it is not reopened, and reports that', async () => {
    const { one, two, led } = await twoNodes()
    const { told, disk } = await led(one, 'one')
    const { last } = await disk.open()
    await two.open()
    await expect(disk.append(entry(last + 1))).rejects.toThrow(StoreUnavailable)
    await expect(disk.open()).rejects.toThrow('another node is the leader now')
    await expect(disk.probe(0)).rejects.toThrow('another node is the leader now')
    expect(told.at(-1)).toBe('lost')
    expect((await two.readLeaderRow()).leader?.nodeId).toBe('two')
  })

  test('writes nothing in a later term once it has ended', async () => {
    const { one, two, led } = await twoNodes()
    const before = await led(one, 'one')
    const { last } = await before.disk.open()
    await before.disk.append(entry(last + 1))
    await two.open()
    before.over.abort()
    const now = await led(one, 'one')
    const opened = await now.disk.open()
    await now.disk.flush(
      { ...noRowChanges(), tasks: new Map([[1, task(1, { taskId: 'new' })]]) },
      opened.last,
    )
    const stale = { ...noRowChanges(), tasks: new Map([[1, task(1, { taskId: 'old' })]]) }
    await expect(before.disk.flush(stale, last + 1)).rejects.toThrow('another node is the leader now')
    expect(await now.disk.tasksById([1])).toMatchObject([{ taskId: 'new' }])
  })
})
