import { type ClientsInput, type HandOffResult, runClients } from '../clients.ts'
import { leaseIds, pullRequest, settleRequest } from '../requests.ts'

export interface SettleAndPullInput extends ClientsInput {
  batch: number
}

/** One request per partition (or batch): each settle also returns the next ones. */
export function settleAndPull(input: SettleAndPullInput): Promise<HandOffResult> {
  return runClients(input, (client) => {
    const { url, instanceId } = client
    const settleAndGoOn = settleRequest(url, instanceId, { batch: input.batch })
    const settleOnly = settleRequest(url, instanceId)
    const onPartitions = (body: string) => {
      const leases = leaseIds(body)
      if (leases.length === 0) {
        client.dry()
        return client.finish()
      }
      if (client.goOn()) {
        client.request(settleAndGoOn(leases), (next) => {
          client.settled(leases.length, next)
          onPartitions(next)
        })
      } else {
        client.request(settleOnly(leases), (answer) => {
          client.settled(leases.length, answer)
          client.finish()
        })
      }
    }
    client.request(pullRequest(url, instanceId, { batch: input.batch }), onPartitions)
  })
}
