import type { DatabaseSync } from 'node:sqlite'
import type {
  DeliveryProgress,
  DeliveryQuery,
  EventMessage,
  OutboxImages,
  StoredDelivery,
  StoredSubscription,
} from '../../handoff/outbox.ts'
import { arrayQuery } from './query.ts'

/** Subscriptions and deliveries: what is looked for has a column, the rest is JSON. */
export class OutboxRows {
  readonly #sql: ReturnType<typeof prepare>

  constructor(db: DatabaseSync) {
    this.#sql = prepare(db)
  }

  /** Within a transaction. */
  write({ subscriptions, deliveries, changes }: OutboxImages): void {
    for (const [id, row] of subscriptions) {
      if (row === null) this.#sql.removeSubscription.run(id)
      else this.#sql.subscription.run(id, JSON.stringify(row))
    }
    for (const { subscription, event, taskId, at, message, progress } of deliveries.values())
      this.#sql.delivery.run(
        subscription,
        event,
        taskId,
        at,
        pendingOf(progress),
        JSON.stringify(message),
        JSON.stringify(progress),
      )
    for (const { subscription, event, progress } of changes.values()) {
      if (progress === null) this.#sql.removeDelivery.run(subscription, event)
      else this.#sql.change.run(pendingOf(progress), JSON.stringify(progress), subscription, event)
    }
  }

  subscriptions(): StoredSubscription[] {
    return this.#sql.subscriptions.all().map(([row]) => JSON.parse(row) as StoredSubscription)
  }

  deliveries({ subscription, pending, taskId, after, newestFirst, limit }: DeliveryQuery): StoredDelivery[] {
    const { log, newest, pendingOnes, pendingOfTask } = this.#sql
    if (!pending) return (newestFirst ? newest : log).all(subscription, after, limit).map(read)
    if (taskId === null) return pendingOnes.all(subscription, after, limit).map(read)
    return pendingOfTask.all(subscription, taskId, after, limit).map(read)
  }
}

/** Null keeps a row out of the indexes of what is pending. */
const pendingOf = ({ state }: DeliveryProgress): number | null => (state === 'pending' ? 1 : null)

type DeliveryRow = [
  subscription: string,
  event: number,
  taskId: string,
  at: number,
  message: string,
  progress: string,
]

const read = ([subscription, event, taskId, at, message, progress]: DeliveryRow): StoredDelivery => ({
  subscription,
  event,
  taskId,
  at,
  message: JSON.parse(message) as EventMessage,
  progress: JSON.parse(progress) as DeliveryProgress,
})

function prepare(db: DatabaseSync) {
  const select = 'SELECT subscription, event, task_id, at, message, progress FROM delivery'
  const deliveries = (rest: string) => arrayQuery<DeliveryRow>(db, `${select} ${rest}`)
  return {
    subscription: db.prepare(
      'INSERT INTO subscription (id, body) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET body = excluded.body',
    ),
    removeSubscription: db.prepare('DELETE FROM subscription WHERE id = ?'),
    subscriptions: arrayQuery<[string]>(db, 'SELECT body FROM subscription ORDER BY id'),
    delivery: db.prepare(
      `INSERT INTO delivery (subscription, event, task_id, at, pending, message, progress)
       VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
    ),
    change: db.prepare('UPDATE delivery SET pending = ?, progress = ? WHERE subscription = ? AND event = ?'),
    removeDelivery: db.prepare('DELETE FROM delivery WHERE subscription = ? AND event = ?'),
    log: deliveries('WHERE subscription = ? AND event > ? ORDER BY event LIMIT ?'),
    newest: deliveries('WHERE subscription = ? AND event < ? ORDER BY event DESC LIMIT ?'),
    pendingOnes: deliveries(
      'WHERE subscription = ? AND pending IS NOT NULL AND event > ? ORDER BY event LIMIT ?',
    ),
    pendingOfTask: deliveries(
      'WHERE subscription = ? AND pending IS NOT NULL AND task_id = ? AND event > ? ORDER BY event LIMIT ?',
    ),
  }
}
