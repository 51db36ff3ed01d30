import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { PostgresServer } from '../../../../test/postgres/support/postgres-server.ts'
import type { ControlOrder } from '../../src/handoff/rules/control.ts'
import { openPostgresStore } from '../../src/store/postgres/open.ts'
import { Connection } from '../../src/store/postgres/session/connection.ts'
import { STEP } from '../../src/store/postgres/windows/lanes.ts'
import { callBackOrder, Driver, leaseOf, nameOf, one, settlement, some } from './conformance/driver.ts'
import { TestClock, testPolicy } from './conformance/harness.ts'

/** Several steps of lanes. */
const LEVELS = 2 * STEP + 100

/** What one step may send: most of its statements are for many lanes, and none is sent for each of them. */
const MOST_STATEMENTS = 60

/**
 * Whoever settles a partition of a task with a barrier waits for the roll lock. So a step has a bounded number of rows,
 * and of round trips, however many lanes there are.
 */
describe('a task of thousands of levels is changed in bounded steps', () => {
  let server: PostgresServer
  let name: string
  let driver: Driver
  let client: pg.Client
  const sent = vi.spyOn(Connection.prototype, 'run')

  beforeAll(async () => {
    server = await PostgresServer.start()
  })
  afterAll(async () => {
    sent.mockRestore()
    await server.dispose()
  })
  beforeEach(async () => {
    const database = await server.borrowDatabase()
    name = database.name
    const clock = new TestClock()
    const url = `${database.url}?alone=never`
    const store = await openPostgresStore({ url, policy: testPolicy, clock: clock.now })
    driver = new Driver({ store, reopen: async () => {}, dispose: async () => {} }, clock)
    client = new pg.Client({ connectionString: database.url })
    await client.connect()
  })
  afterEach(async () => {
    expect(await driver.store.audit()).toEqual([])
    await client.end()
    await driver.store.close()
    await server.giveBack(name)
  })

  const levels = () => Array.from({ length: LEVELS }, (_, level) => one(level, 0))

  async function settleAll(order: Parameters<typeof settlement>[0] = {}): Promise<void> {
    const leases = (await driver.pullAll(1000)).map(({ lease }) => leaseOf(lease?.id ?? ''))
    const settlements = leases.map((lease) => ({ lease, order: settlement(order) }))
    await driver.batch({ settles: [{ instance: null, settlements }] })
  }

  /** How many statements it takes. */
  async function statementsOf(work: () => Promise<unknown>): Promise<number> {
    sent.mockClear()
    await work()
    return sent.mock.calls.length
  }

  const rowsOf = async (condition: string) =>
    (await client.query(`SELECT count(*)::int AS rows FROM baton.${condition}`)).rows[0].rows as number

  /** Steps of an order, or of upkeep, each within its bounds; `rows` of a kind come to be or go. Returns how many. */
  async function steps(rows: string, step: () => Promise<boolean>): Promise<number> {
    let taken = 0
    let before = await rowsOf(rows)
    for (let more = true; more; taken += 1) {
      const statements = await statementsOf(async () => {
        more = await step()
      })
      expect(statements).toBeLessThan(MOST_STATEMENTS)
      const now = await rowsOf(rows)
      expect(Math.abs(now - before)).toBeLessThanOrEqual(STEP)
      before = now
    }
    return taken
  }

  const stepOf = (order: ControlOrder) => async () => {
    const result = await driver.store.control(order)
    return result.kind === 'applied' && result.more
  }

  const upkeep = (retentionMillis?: number) => async () => (await driver.tidy(retentionMillis)).more

  test('called back, and counted', async () => {
    expect(await statementsOf(() => driver.callBack('a', levels()))).toBeLessThan(MOST_STATEMENTS)
    expect(await statementsOf(() => driver.task('a'))).toBeLessThan(MOST_STATEMENTS)
  })

  test('paused and resumed', async () => {
    await driver.callBack('a', levels())
    expect(await steps('held', stepOf({ verb: 'pause', taskId: 'a' }))).toBeGreaterThan(2)
    expect(await rowsOf('held')).toBe(LEVELS)
    expect(await steps('ready', stepOf({ verb: 'resume', taskId: 'a' }))).toBeGreaterThan(2)
    expect(await rowsOf('ready')).toBe(LEVELS)
  })

  test('its barrier put up and taken down', async () => {
    await driver.callBack('a', levels())
    const barrier = (enabled: boolean) => stepOf({ verb: 'level-barrier', taskId: 'a', enabled })
    expect(await steps('held', barrier(true))).toBeGreaterThan(2)
    expect(await rowsOf('held')).toBe(LEVELS - 1)
    expect(await steps('ready', barrier(false))).toBeGreaterThan(2)
    expect(await rowsOf('ready')).toBe(LEVELS)
  })

  test('its barrier taken down before anything was counted', async () => {
    const closed = { verb: 'level-barrier', taskId: 'a', enabled: true } as const
    await driver.callBack('a', [one(LEVELS, 0)])
    await driver.control(closed)
    await driver.callBack('a', levels())
    expect(await steps('ready', stepOf({ ...closed, enabled: false }))).toBeGreaterThan(2)
    expect(await rowsOf('ready')).toBe(LEVELS + 1)
  })

  test('cancelled and purged', async () => {
    await driver.callBack('a', levels())
    expect(await steps('ready', stepOf({ verb: 'cancel', taskId: 'a' }))).toBeGreaterThan(2)
    expect(await rowsOf("partition WHERE state = 'cancelled'")).toBe(LEVELS)
    driver.clock.advance(1)
    expect(await steps('partition', upkeep(0))).toBeGreaterThan(2)
    expect(await rowsOf('partition')).toBe(0)
  })

  test('run again', async () => {
    await driver.callBack('a', levels())
    await settleAll()
    const order = { verb: 'retry', taskId: 'a', level: null, partitions: null, done: true } as const
    await steps("partition WHERE state = 'held'", stepOf(order))
    expect(await steps("partition WHERE state = 'held'", upkeep())).toBeGreaterThan(1)
    expect(await rowsOf('ready')).toBe(LEVELS)
  })

  test('retried', async () => {
    await driver.callBack('a', levels())
    await settleAll({ outcome: 'failed', final: true })
    const order = { verb: 'retry', taskId: 'a', level: null, partitions: null, done: false } as const
    expect(await steps('partition WHERE parked', stepOf(order))).toBeGreaterThan(2)
    expect(await rowsOf('ready')).toBe(LEVELS)
  })

  test.each([
    ['retried', { outcome: 'failed', final: true }, 'baton-retry'],
    ['run again', { outcome: 'done' }, 'baton-rerun'],
  ] as const)('%s by their names, of one long level and of many short ones', async (_, end, change) => {
    const partitions = [...some(0, LEVELS), ...levels().slice(1)]
    await driver.callBack('a', partitions)
    await settleAll(end)
    const statements = await statementsOf(async () =>
      expect(await driver.retry('a', { partitions, done: true })).toMatchObject({
        changed: partitions.length,
      }),
    )
    expect(statements).toBeLessThan(Math.ceil(partitions.length / STEP) * MOST_STATEMENTS)
    for (const [{ name }, [ids] = []] of sent.mock.calls)
      if (name === change) expect((ids as number[]).length).toBeLessThanOrEqual(STEP)
    expect(await driver.pullAll(1000)).toHaveLength(partitions.length)
  })

  test('nothing is retried when the last name is not known', async () => {
    await driver.callBack('a', levels())
    await settleAll({ outcome: 'failed', final: true })
    const partitions = [...levels(), one(LEVELS, 0)]
    expect(await driver.retry('a', { partitions })).toEqual({
      kind: 'partitions_unknown',
      positions: [LEVELS],
    })
    expect(await rowsOf('ready')).toBe(0)
  })

  test('what is parked passed by its barrier, up to the first level that is not', async () => {
    await driver.callBack('a', levels())
    await settleAll({ outcome: 'failed', final: true })
    await driver.callBack('a', [one(LEVELS, 0), one(LEVELS + 1, 0)])
    await driver.control({ verb: 'level-barrier', taskId: 'a', enabled: true })
    expect((await driver.pull()).partitions).toEqual([])
    const skip = stepOf({ verb: 'skip-parked', taskId: 'a' })
    expect(await steps('lane WHERE parked_skipped', skip)).toBeGreaterThan(2)
    expect((await driver.pullAll()).map(nameOf)).toEqual([`a-${LEVELS}-0`])
  })

  test('many tasks whose barriers open at once', async () => {
    const tasks = Array.from({ length: 300 }, (_, task) => `t${task}`)
    await driver.batch({ callBacks: tasks.map((task) => callBackOrder(task, [one(0, 0), one(1, 0)])) })
    await driver.pullAll(1000)
    for (const taskId of tasks) await driver.control({ verb: 'level-barrier', taskId, enabled: true })
    await driver.pass(testPolicy.leaseMillis)
    await driver.pass(testPolicy.backoffMaxMillis)
    const handed = (await driver.pullAll(1000)).map(({ lease }) => leaseOf(lease?.id ?? ''))
    expect(handed).toHaveLength(tasks.length)
    const settlements = handed.map((lease) => ({ lease, order: settlement() }))
    const settles = [{ instance: null, settlements }]
    expect(await statementsOf(() => driver.batch({ settles }))).toBeLessThan(MOST_STATEMENTS)
    expect((await driver.pullAll(1000)).map(({ level }) => level)).toEqual(tasks.map(() => 1))
  })

  test('many tasks that are stuck behind what is parked, and get more', async () => {
    const tasks = Array.from({ length: 100 }, (_, task) => `t${task}`)
    const callBack = (level: number) =>
      driver.batch({ callBacks: tasks.map((task) => callBackOrder(task, [one(level, 0)])) })
    await callBack(0)
    await settleAll({ outcome: 'failed', final: true })
    for (const taskId of tasks) await driver.control({ verb: 'level-barrier', taskId, enabled: true })
    sent.mockClear()
    await callBack(1)
    const rolled = sent.mock.calls.filter(([{ name }]) => name.startsWith('baton-roll-'))
    expect(rolled.length).toBeLessThan(MOST_STATEMENTS)
    const repeated = { verb: 'level-barrier', taskId: 't99', enabled: true } as const
    expect(await driver.control(repeated)).toMatchObject({ changed: 0, state: 'stalled' })
  })
})
