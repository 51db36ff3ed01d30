import { expect, test } from 'vitest'
import { MergedBatches } from '../../src/cluster/merged-batches.ts'
import {
  type HandOffAnswers,
  type HandOffBatch,
  type PullOrder,
  type Store,
  StoreUnavailable,
} from '../../src/handoff/store.ts'

const pull = (key: string): PullOrder => ({ instance: null, batch: 1, records: null, key })
const batchOf = (...keys: string[]): HandOffBatch => ({
  settles: [],
  renews: [],
  undos: [],
  callBacks: [],
  pulls: keys.map(pull),
})

/** Works on one batch when it is told to, and answers each pull with its key. */
class Engine {
  readonly seen: string[][] = []
  #next = Promise.withResolvers<void>()

  step(error?: Error): Promise<void> {
    if (error === undefined) this.#next.resolve()
    else this.#next.reject(error)
    return new Promise((resolve) => setImmediate(resolve))
  }

  async handOff({ pulls }: HandOffBatch): Promise<HandOffAnswers> {
    this.seen.push(pulls.map(({ key }) => key ?? ''))
    this.#next = Promise.withResolvers<void>()
    await this.#next.promise
    const answered = pulls.map(({ key }) => ({ partitions: [], repeated: false, key }))
    return {
      settles: [],
      renews: [],
      undone: 0,
      callBacks: [],
      pulls: answered,
      readied: 7,
      nextDueInMillis: 5,
    }
  }
}

const open = () => {
  const engine = new Engine()
  return { engine, batches: new MergedBatches(engine as unknown as Store) }
}
const keysIn = ({ pulls }: HandOffAnswers) => pulls.map((pulled) => (pulled as { key?: string }).key)

test('what comes while the engine is busy shares its next batch, and each gets its own answers', async () => {
  const { engine, batches } = open()
  const first = batches.handOff(batchOf('a'))
  const others = Promise.all([
    batches.handOff(batchOf('b', 'c')),
    batches.handOff(batchOf()),
    batches.handOff(batchOf('d')),
  ])
  await engine.step()
  expect(keysIn(await first)).toEqual(['a'])
  await engine.step()
  expect((await others).map(keysIn)).toEqual([['b', 'c'], [], ['d']])
  expect((await others).map(({ readied, nextDueInMillis }) => [readied, nextDueInMillis])).toEqual([
    [7, 5],
    [7, 5],
    [7, 5],
  ])
  expect(engine.seen).toEqual([['a'], ['b', 'c', 'd']])
})

test('one whose data breaks the engine fails alone', async () => {
  const { engine, batches } = open()
  const first = batches.handOff(batchOf('a'))
  const good = batches.handOff(batchOf('b'))
  const bad = batches.handOff(batchOf('c'))
  const refused = expect(bad).rejects.toThrow('broken')
  await engine.step()
  await first
  await engine.step(new Error('broken'))
  await engine.step()
  expect(keysIn(await good)).toEqual(['b'])
  await engine.step(new Error('broken'))
  await refused
  expect(engine.seen).toEqual([['a'], ['b', 'c'], ['b'], ['c']])
})

test('a store that cannot commit refuses all, and none is tried again', async () => {
  const { engine, batches } = open()
  const first = batches.handOff(batchOf('a'))
  const others = Promise.allSettled([batches.handOff(batchOf('b')), batches.handOff(batchOf('c'))])
  await engine.step()
  await first
  await engine.step(new StoreUnavailable('store_unavailable', 'away'))
  expect((await others).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  expect(engine.seen).toEqual([['a'], ['b', 'c']])
})

test('a full batch leaves the rest for the next', async () => {
  const { engine, batches } = open()
  const many = Array.from({ length: 400 }, (_, number) => String(number))
  const first = batches.handOff(batchOf('a'))
  const others = Promise.all([1, 2, 3].map(() => batches.handOff(batchOf(...many))))
  for (let steps = 0; steps < 3; steps += 1) await engine.step()
  await first
  expect((await others).map(({ pulls }) => pulls.length)).toEqual([400, 400, 400])
  expect(engine.seen.map(({ length }) => length)).toEqual([1, 800, 400])
})
