import { openEmbeddedStore } from '../../../packages/server/src/open-store.ts'
import { openPostgresStore } from '../../../packages/server/src/store/postgres/open.ts'
import { testPolicy } from '../../../packages/server/test/store/conformance/test-policy.ts'

/** Recounts everything in a store that no node has open. The only look that chaos takes at the inside. */
export async function auditEmbedded(folder: string): Promise<string[]> {
  return audited(await openEmbeddedStore({ folder, policy: testPolicy }))
}

export async function auditPostgres(url: string): Promise<string[]> {
  return audited(await openPostgresStore({ url, policy: testPolicy }))
}

async function audited(store: { audit(): Promise<string[]>; close(): Promise<void> }): Promise<string[]> {
  try {
    return await store.audit()
  } finally {
    await store.close()
  }
}
