import { newIdempotencyKey } from '../../../packages/client/src/client-options.ts'
import { type ClientsInput, type HandOffResult, runClients } from '../clients.ts'
import { leaseIds, pullRequest, pullRequestForKey, settleRequest } from '../requests.ts'

export interface PullThenSettleInput extends ClientsInput {
  /** Partitions per pull; 1 sends the plain pull, without a Prefer header. */
  batch: number
  /** Every pull has its own Idempotency-Key, as the client library sends it. */
  withKeys?: boolean
}

/** Two requests per partition (or batch): pull, then settle as done. */
export function pullThenSettle(input: PullThenSettleInput): Promise<HandOffResult> {
  return runClients(input, (client) => {
    const { url, instanceId } = client
    const bare = pullRequest(url, instanceId, input.batch === 1 ? {} : { batch: input.batch })
    const keyed = pullRequestForKey(url, instanceId)
    const settle = settleRequest(url, instanceId)
    const pull = () => {
      if (!client.goOn()) return client.finish()
      client.request(input.withKeys ? keyed(newIdempotencyKey()) : bare, onPulled)
    }
    const onPulled = (body: string) => {
      const leases = leaseIds(body)
      if (leases.length === 0) {
        client.dry()
        return client.finish()
      }
      client.request(settle(leases), (answer) => {
        client.settled(leases.length, answer)
        pull()
      })
    }
    pull()
  })
}
