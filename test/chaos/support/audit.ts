import { randomBytes } from 'node:crypto'
import { openPostgresDisk } from '../../../packages/server/src/disk/postgres/postgres-disk.ts'
import { openEngine } from '../../../packages/server/src/handoff/engine/engine-store.ts'
import { openEmbeddedStore } from '../../../packages/server/src/open-store.ts'
import { testPolicy } from '../../../packages/server/test/store/conformance/test-policy.ts'

/**
 * Recounts everything in a store that no node has open. The only place where chaos reads a store's internals.
 */
export async function auditEmbedded(folder: string): Promise<string[]> {
  return recounted(await openEmbeddedStore({ folder, policy: testPolicy }))
}

export async function auditPostgres(url: string): Promise<string[]> {
  const disk = await openPostgresDisk({ url, node: { nodeId: 'audit', url: '' } })
  const secret = () => randomBytes(12).toString('base64url')
  return recounted(
    await openEngine({ disk, policy: testPolicy, clock: Date.now, random: Math.random, secret }),
  )
}

async function recounted(store: { recount(): Promise<string[]>; close(): Promise<void> }): Promise<string[]> {
  try {
    return await store.recount()
  } finally {
    await store.close()
  }
}
