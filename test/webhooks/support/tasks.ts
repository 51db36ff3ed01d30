import type { PulledPartition, SubscriptionSecret } from '@baton/protocol'

async function post(url: string, body: unknown): Promise<Response> {
  return fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
}

/** A node that has just lost its leader answers with an error; the request is then sent again. */
async function answered<Answer>(ask: () => Promise<Response>): Promise<Answer> {
  while (true) {
    const response = await ask().catch(() => undefined)
    if (response?.ok === true) return (await response.json()) as Answer
    if (response !== undefined && response.status !== 503)
      throw new Error(`answered ${response.status}: ${await response.text()}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

export const subscribe = (service: string, url: string): Promise<SubscriptionSecret> =>
  answered(() => post(`${service}/subscriptions`, { url }))

/** Finishes tasks of two levels, each with one partition: three events per task. */
export async function finishTasks(service: string, taskIds: readonly string[]): Promise<void> {
  for (const taskId of taskIds) {
    const array = [0, 1].map((level) => ({
      taskId,
      computeTableName: 'results.orders',
      partition_name: `${taskId}-${level}-0`,
      record_count: 10,
      priorityLevel: level,
    }))
    await answered(() => post(`${service}/call-back`, array))
  }
  let done = 0
  while (done < 2 * taskIds.length) {
    const { partitions } = await answered<{ partitions: PulledPartition[] }>(() =>
      fetch(`${service}/pull?batch=10`),
    )
    const settlements = partitions.map(({ lease }) => ({ leaseId: lease?.id, outcome: 'done' }))
    if (settlements.length === 0) continue
    const { settled } = await answered<{ settled: string[] }>(() => post(`${service}/settle`, settlements))
    done += settled.length
  }
}
