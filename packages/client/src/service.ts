import { BatonClient } from './client.ts'
import type { BatonClientOptions } from './client-options.ts'

/** Where a service is: its URL, its URL with further options, or a client that is in use already. */
export type ServiceAddress = string | URL | BatonClientOptions | BatonClient

export function clientOf(service: ServiceAddress): BatonClient {
  return service instanceof BatonClient ? service : new BatonClient(service)
}
