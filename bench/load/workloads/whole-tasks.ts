import { type ClientsInput, type HandOffResult, runClients } from '../clients.ts'
import { callBackBody, newTask } from '../descriptors.ts'
import { callBackRequest, leaseIds, pullRequest, settleRequest } from '../requests.ts'

export interface WholeTasksInput extends ClientsInput {
  partitionsPerTask: number
}

/**
 * Tasks arrive and end at the same rate: each client calls one back, then pulls and settles as many
 * partitions, in one batch if they are ready.
 */
export function wholeTasks(input: WholeTasksInput): Promise<HandOffResult> {
  const { partitionsPerTask } = input
  return runClients(input, (client) => {
    const { url, instanceId } = client
    const pull = pullRequest(url, instanceId, { batch: partitionsPerTask })
    const settle = settleRequest(url, instanceId)
    let left = 0
    const next = () => {
      if (left > 0) return client.request(pull, onPulled)
      if (!client.goOn()) return client.finish()
      left = partitionsPerTask
      client.request(callBackRequest(url, callBackBody(partitionsPerTask, newTask(), 1)), next)
    }
    const onPulled = (body: string) => {
      const leases = leaseIds(body)
      left -= Math.max(1, leases.length)
      // Other clients were faster.
      if (leases.length === 0) return next()
      client.request(settle(leases), (answer) => {
        client.settled(leases.length, answer)
        next()
      })
    }
    next()
  })
}
