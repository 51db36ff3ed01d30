import { expect, test } from 'vitest'
import { progressOf, type StoredDelivery, type StoredSubscription } from '../../src/handoff/outbox.ts'
import type { Posted } from '../../src/webhooks/posting.ts'
import { RetrySchedule, Target } from '../../src/webhooks/target.ts'

const NOW = 1_800_000_000_000

const subscription: StoredSubscription = {
  id: 's',
  url: 'http://a.example/',
  types: ['level.done'],
  taskPrefix: '',
  secrets: [],
  state: 'active',
  reason: null,
  createdAt: NOW,
  deletedTo: 0,
}

const accepted: Posted = {
  isDelivered: true,
  isGone: false,
  status: 204,
  error: null,
  retryAfterMillis: null,
}

/** A target with pending deliveries, the events 1, 2 and so on of these tasks. */
class Sending {
  readonly target = new Target(subscription, new RetrySchedule(5000))
  readonly #pending: Map<number, StoredDelivery>

  constructor(...tasks: string[]) {
    this.#pending = new Map(
      tasks.map((taskId, at) => {
        const facts = { of: 'level', level: at, partitions: 1, records: 1 } as const
        const message = { id: `evt_${at + 1}`, type: 'level.done', generation: 1, facts } as const
        return [at + 1, { subscription: 's', event: at + 1, taskId, at: NOW, message, progress: null }]
      }),
    )
  }

  /** Everything that can be sent now. */
  async send(): Promise<number[]> {
    const sent: number[] = []
    while (true) {
      const delivery = await this.target.next(NOW, async (ofTask, after, limit) =>
        [...this.#pending.values()]
          .filter(({ event, taskId }) =>
            ofTask === null
              ? event > after
              : taskId === ofTask.taskId && event > after && event <= ofTask.upTo,
          )
          .slice(0, limit),
      )
      if (delivery === undefined) return sent
      sent.push(delivery.event)
    }
  }

  /** Answers 429 with `Retry-After`. */
  requestPause(event: number): void {
    const delivery = this.#pending.get(event) as StoredDelivery
    const posted = { ...accepted, isDelivered: false, status: 429, retryAfterMillis: 600_000 }
    const progress = this.target.judge(delivery, posted, NOW, 1)
    // Stored, so another process keeps the pause, too.
    expect(progress).toMatchObject({ state: 'pending', nextAt: NOW + 600_000 })
    this.#pending.set(event, { ...delivery, progress })
    this.target.finished({ subscription: 's', event, progress }, posted, NOW)
  }

  accept(...events: number[]): void {
    for (const event of events) {
      const delivery = this.#pending.get(event) as StoredDelivery
      this.#pending.delete(event)
      const progress = { ...progressOf(delivery), state: 'delivered' as const }
      this.target.finished({ subscription: 's', event, progress }, accepted, NOW)
    }
  }
}

/** Its window allows several requests. */
async function wide(...tasks: string[]): Promise<Sending> {
  const sending = new Sending('first', ...tasks)
  expect(await sending.send()).toEqual([1])
  sending.accept(1)
  return sending
}

test('events of a task are sent one after another, past those of other tasks', async () => {
  const sending = await wide('a', 'a', 'b', 'a', 'c')
  expect(await sending.send()).toEqual([2, 4])
  sending.accept(4)
  expect(await sending.send()).toEqual([6])
  sending.accept(2)
  expect(await sending.send()).toEqual([3])
  sending.accept(3, 6)
  expect(await sending.send()).toEqual([5])
  sending.accept(5)
  expect(await sending.send()).toEqual([])
})

test('an operator changes deliveries when an event was accepted and the next of its task is due', async () => {
  const sending = await wide('a', 'a', 'b', 'b')
  expect(await sending.send()).toEqual([2, 4])
  sending.accept(2)
  sending.target.rewind()
  expect(await sending.send()).toEqual([3])
  sending.accept(3, 4)
  expect(await sending.send()).toEqual([5])
})

test('a pause that the receiver requested is kept when it accepts an earlier event', async () => {
  const sending = await wide('a', 'b', 'c')
  expect(await sending.send()).toEqual([2, 3])
  sending.requestPause(2)
  sending.accept(3)
  expect(await sending.send()).toEqual([])
  expect(sending.target.openUntil(NOW)).toBe(NOW + 600_000)
  sending.target.rewind()
  expect(await sending.send()).toEqual([4])
})
