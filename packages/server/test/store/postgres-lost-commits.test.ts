import { describe, expect, test } from 'vitest'
import { CuttingProxy } from '../../../../test/postgres/support/cutting-proxy.ts'
import { parseLeaseId } from '../../src/handoff/rules/lease-id.ts'
import { type HandOffBatch, StoreUnavailable } from '../../src/handoff/store.ts'
import { openPostgresStore } from '../../src/store/postgres/open.ts'
import type { AloneMode } from '../../src/store/postgres/session/database-url.ts'
import { callBackOrder, leaseOf, pullOrder, settlement, some } from './conformance/driver.ts'
import { testPolicy } from './conformance/harness.ts'
import { sharedDatabases } from './support/shared-databases.ts'

const databases = sharedDatabases()

const nothing: HandOffBatch = { settles: [], renews: [], undos: [], callBacks: [], pulls: [] }

/** A store that reaches its database through a proxy, which cuts two of three commits: one way or the other, with a word or without. */
async function storeBehindProxy(alone: AloneMode) {
  const { server } = databases
  const { url, name } = await server.createDatabase()
  const proxy = await CuttingProxy.start(server.port)
  const store = await openPostgresStore({
    url: `${url.replace(`:${server.port}/`, `:${proxy.port}/`)}?alone=${alone}`,
    policy: testPolicy,
  })
  let commits = 0
  proxy.decide = () => {
    commits += 1
    proxy.isPolite = commits % 2 === 0
    return commits % 3 === 0 ? 'after' : commits % 3 === 1 ? 'before' : null
  }
  const close = async () => {
    proxy.decide = () => null
    expect(await store.audit()).toEqual([])
    const [run] = await server.query('SELECT is_called FROM baton.note_run', name)
    expect(run).toEqual({ is_called: alone !== 'never' })
    await store.close()
    await proxy.stop()
  }
  return { store, proxy, close, name }
}

/** The same promises for a node that hands out by transactions, and for one that notes what it hands out. */
describe.each<AloneMode>(['never', 'whenever-possible'])('a node that is alone %s', (alone) => {
  test('a commit whose answer was lost is neither repeated nor forgotten', async () => {
    const { store, proxy, close } = await storeBehindProxy(alone)
    const ask = (batch: Partial<HandOffBatch>) => store.handOff({ ...nothing, ...batch })

    // No call-back is doubled: what was stored by the lost commit is answered as accepted, once.
    for (let array = 0; array < 20; array += 1) {
      const { callBacks } = await ask({ callBacks: [callBackOrder('a', some(0, 5, {}, array * 5))] })
      expect(callBacks).toEqual([{ kind: 'stored', accepted: 5, duplicates: 0 }])
    }

    // No partition is leased twice: every lease in the database is one that was answered.
    const leases: string[] = []
    for (let pull = 0; pull < 25; pull += 1) {
      const { pulls } = await ask({ pulls: [pullOrder({ batch: 4, instance: 'w', key: `key-${pull}` })] })
      expect(pulls[0]).toMatchObject({ repeated: false })
      leases.push(...(pulls[0]?.partitions ?? []).map(({ lease }) => lease?.id ?? ''))
    }
    expect(new Set(leases.map((id) => parseLeaseId(id)?.partition)).size).toBe(100)
    expect(leases.every((id) => parseLeaseId(id)?.term === 1)).toBe(true)
    expect((await store.task('a'))?.facts.partitions).toMatchObject({ leased: 100, ready: 0, held: 0 })

    // No settle is lost, and none is answered wrongly: not even a release that is leased again at once.
    for (const [position, id] of leases.entries()) {
      const outcome = position % 5 === 0 ? 'released' : 'done'
      const settlements = [{ lease: leaseOf(id), order: settlement({ outcome }) }]
      const pulls = outcome === 'released' ? [pullOrder()] : []
      const answers = await ask({ settles: [{ instance: 'w', settlements }], pulls })
      expect(answers.settles).toEqual([[null]])
      for (const { lease } of answers.pulls[0]?.partitions ?? []) {
        const again = [{ lease: leaseOf(lease?.id ?? ''), order: settlement() }]
        expect((await ask({ settles: [{ instance: 'w', settlements: again }] })).settles).toEqual([[null]])
      }
    }
    expect((await store.task('a'))?.facts.partitions).toMatchObject({ done: 100, leased: 0, ready: 0 })
    expect(proxy.cuts.before).toBeGreaterThan(20)
    expect(proxy.cuts.after).toBeGreaterThan(20)
    await close()
  })

  test('the same holds for requests that are under way at the same time', async () => {
    const { store, proxy, close } = await storeBehindProxy(alone)
    const ask = (batch: Partial<HandOffBatch>) => store.handOff({ ...nothing, ...batch })
    await Promise.all(
      Array.from({ length: 10 }, (_, array) =>
        ask({ callBacks: [callBackOrder('a', some(0, 20, {}, array * 20))] }),
      ),
    )
    const finished: string[] = []
    const work = async () => {
      while (true) {
        const { pulls } = await ask({ pulls: [pullOrder({ batch: 3 })] })
        const ids = (pulls[0]?.partitions ?? []).map(({ lease }) => lease?.id ?? '')
        if (ids.length === 0) return
        const settlements = ids.map((id) => ({ lease: leaseOf(id), order: settlement() }))
        const { settles } = await ask({ settles: [{ instance: null, settlements }] })
        expect(settles).toEqual([ids.map(() => null)])
        finished.push(...ids)
      }
    }
    await Promise.all(Array.from({ length: 6 }, work))
    expect(new Set(finished.map((id) => parseLeaseId(id)?.partition)).size).toBe(200)
    expect(finished).toHaveLength(200)
    expect((await store.task('a'))?.facts.partitions).toMatchObject({ done: 200, leased: 0 })
    expect(proxy.cuts.after).toBeGreaterThan(10)
    await close()
  })

  test('leases are taken off the set that they are due with once, whichever answers are lost', async () => {
    const { store, proxy, close, name } = await storeBehindProxy(alone)
    const ask = (batch: Partial<HandOffBatch>) => store.handOff({ ...nothing, ...batch })
    await ask({ callBacks: [callBackOrder('a', some(0, 40))] })
    const { pulls } = await ask({ pulls: [pullOrder({ batch: 40 })] })
    const leases = (pulls[0]?.partitions ?? []).map(({ lease }) => leaseOf(lease?.id ?? ''))
    // Leases that are settled before they are written up are never due.
    await store.task('a')
    // Of each settling, its commit arrives; what follows is confirmed in none of them.
    for (const lease of leases.slice(0, 8)) {
      proxy.decide = () => null
      await ask({ settles: [{ instance: null, settlements: [{ lease, order: settlement() }] }] })
      let cuts = 0
      proxy.decide = () => (++cuts <= 2 ? 'after' : null)
      await store.task('a')
    }
    expect(proxy.cuts.after).toBeGreaterThan(8)
    const sets = await databases.server.query(
      'SELECT remaining, cardinality(ids) AS leases FROM baton.due',
      name,
    )
    expect(sets).toEqual([{ remaining: 32, leases: 40 }])
    await close()
  })

  test('whoever shares a commit with others is told when it could not be looked for, instead of nothing', async () => {
    const { store, proxy, close } = await storeBehindProxy(alone)
    proxy.decide = () => null
    const ask = (batch: Partial<HandOffBatch>) => store.handOff({ ...nothing, ...batch })
    await ask({ callBacks: [callBackOrder('a', some(0, 2))] })
    const keyed = pullOrder({ key: 'key' })
    const given = (await ask({ pulls: [keyed] })).pulls[0]?.partitions
    const other = (await ask({ pulls: [pullOrder()] })).pulls[0]?.partitions[0]?.lease?.id ?? ''

    proxy.goneAt = 'baton-reasons-for-nothing'
    const settlements = [{ lease: leaseOf(other), order: settlement() }]
    const { settles, pulls } = await ask({ settles: [{ instance: null, settlements }], pulls: [keyed] })
    expect(settles).toEqual([[null]])
    expect(pulls).toEqual([{ partitions: [], repeated: false, undecided: expect.any(StoreUnavailable) }])

    proxy.comeBack()
    const repeated = (await ask({ pulls: [keyed] })).pulls[0]
    expect(repeated?.repeated).toBe(true)
    expect(repeated?.partitions.map(({ lease }) => lease?.id)).toEqual(given?.map(({ lease }) => lease?.id))
    await close()
  })
  test('a pull that is under way when the server crashes is answered when it is back', async () => {
    const database = await databases.create()
    const node = await database.open({ parameters: `alone=${alone}` })
    await node.callBack('a', some(0, 600))
    const before = alone === 'never' ? [] : await database.goAlone(node, 'a')
    await database.holdKeyedPulls()
    const pulling = node.pull({ batch: 3, key: 'k' })
    pulling.catch(() => {})
    await database.untilWaiting(1)
    await databases.server.crash()
    await databases.server.start()
    expect((await pulling).partitions).toHaveLength(3)
    expect((await node.task('a')).facts.partitions).toMatchObject({ leased: before.length + 3 })
    expect(await node.store.audit()).toEqual([])
  })
})
