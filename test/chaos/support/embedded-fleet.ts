import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openEmbeddedStore } from '../../../packages/server/src/open-store.ts'
import { testPolicy } from '../../../packages/server/test/store/conformance/test-policy.ts'
import { NodeProcess } from '../../postgres/support/node-process.ts'
import { freezeNode, killNode } from './disturbances.ts'
import { type Fleet, settings } from './fleet.ts'

/** A fleet of one: a node with its embedded store, which finds its data again when it is started again. */
export async function startEmbeddedFleet(leaseMillis: number): Promise<Fleet> {
  const folder = await mkdtemp(join(tmpdir(), 'baton-chaos-'))
  const node = await NodeProcess.start('alone', [...settings(leaseMillis), '--data', folder])
  return {
    nodes: [node],
    disturbances: [killNode([node]), freezeNode([node], leaseMillis * 3)],
    audit: async () => {
      await node.kill()
      const store = await openEmbeddedStore({ folder, policy: testPolicy })
      try {
        return await store.audit()
      } finally {
        await store.close()
      }
    },
    dispose: async () => {
      await node.kill()
      await rm(folder, { recursive: true, force: true })
    },
  }
}
