import { openEmbeddedStore } from '../../../src/open-store.ts'
import { testPolicy } from '../conformance/test-policy.ts'

/**
 * A store in its own process, for tests of process limits, permissions and crashes. Its parent calls it over
 * IPC.
 */
export interface StoreCall {
  readonly id: number
  readonly verb: string
  readonly argument: unknown
}

export type StoreReply =
  | { readonly id: number; readonly result?: unknown }
  | {
      readonly id: number
      readonly error: { readonly name: string; readonly code?: string; readonly text: string }
    }

const reply = (answer: StoreReply) => process.send?.(answer)

function failure(id: number, error: unknown): StoreReply {
  const { name, message, code } = error as Error & { code?: string }
  return { id, error: { name, text: message, ...(code === undefined ? {} : { code }) } }
}

try {
  const store = await openEmbeddedStore({ folder: process.argv[2] ?? '', policy: testPolicy })
  process.on('message', async ({ id, verb, argument }: StoreCall) => {
    try {
      const run = store[verb as keyof typeof store] as (argument: unknown) => Promise<unknown>
      reply({ id, result: await run.call(store, argument) })
    } catch (error) {
      reply(failure(id, error))
    }
  })
  reply({ id: 0, result: 'open' })
} catch (error) {
  reply(failure(0, error))
  process.disconnect()
}
