import { type HandOffResult, runClients } from '../clients.ts'
import { callBackBody, type Task } from '../descriptors.ts'
import { HttpConnection } from '../http-connection.ts'
import {
  callBackRequest,
  leaseIds,
  pathOfPull,
  pullRequest,
  renewRequest,
  settleRequest,
} from '../requests.ts'

export interface SteadyBacklogInput {
  url: string
  clients: number
  seconds: number
  /** What the backlog consists of. The caller continues with the returned tasks. */
  tasks: readonly Task[]
  /** Each lease is renewed once before it is settled, as by workers with long attempts. */
  renews?: boolean
  /** The tables that pulls name, in rotation. Absent: none. */
  choices?: readonly (readonly string[])[]
}

const PER_CALL_BACK = 250

/**
 * Pulls and settles one by one while a producer adds as many partitions as were taken to the same tasks in
 * turn, so that the backlog keeps its size and its number of tasks. The producer is part of the load for
 * every size alike, not a difference between the contenders.
 */
export async function steadyBacklog(
  input: SteadyBacklogInput,
): Promise<HandOffResult & { tasks: readonly Task[] }> {
  const { tasks } = input
  const chosen = input.choices?.map((tables) =>
    pullRequest(input.url, 'bench-worker', {}, pathOfPull(tables)),
  )
  let turn = 0
  let pulls = 0
  const producer = await HttpConnection.open(input.url)
  let owed = 0
  let producing: Promise<void> | undefined
  let failure: Error | undefined
  const callBack = async (partitions: number) => {
    owed -= partitions
    const called = callBackBody(partitions, tasks[turn++ % tasks.length], 1)
    const { status, body } = await producer.exchange(callBackRequest(input.url, called))
    if (status !== 200) throw new Error(`call-back answered ${status}: ${body.slice(0, 500)}`)
  }
  const produce = async () => {
    while (owed >= PER_CALL_BACK) await callBack(PER_CALL_BACK)
  }
  const taken = (count: number) => {
    owed += count
    if (owed < PER_CALL_BACK || producing) return
    producing = produce()
      .catch((error: Error) => {
        failure = error
      })
      .finally(() => {
        producing = undefined
      })
  }
  try {
    const result = await runClients({ ...input, urls: [input.url] }, (client) => {
      const requests = chosen ?? [pullRequest(client.url, client.instanceId)]
      const settle = settleRequest(client.url, client.instanceId)
      const renew = renewRequest(client.url, client.instanceId)
      const settleThem = (leases: readonly string[]) =>
        client.request(settle(leases), (answer) => {
          client.settled(leases.length, answer)
          next()
        })
      const next = () => {
        if (failure || !client.goOn()) return client.finish()
        const pull = requests[pulls++ % requests.length] as string
        client.request(pull, (body) => {
          const leases = leaseIds(body)
          if (leases.length === 0) {
            client.dry()
            return client.finish()
          }
          taken(leases.length)
          if (input.renews) client.request(renew(leases), () => settleThem(leases))
          else settleThem(leases)
        })
      }
      next()
    })
    await producing
    if (failure) throw failure
    // The next measurement finds the backlog as large as this one did.
    if (owed > 0) await callBack(owed)
    return { ...result, tasks }
  } finally {
    producer.close()
  }
}
