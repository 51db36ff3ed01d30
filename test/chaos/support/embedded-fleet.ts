import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { NodeProcess } from '../../postgres/support/node-process.ts'
import { auditEmbedded } from './audit.ts'
import { type Fleet, settings } from './fleet.ts'
import { freezeNode, killNode } from './node-disturbances.ts'

/** A fleet of one node with its embedded store, which it opens again after a restart. */
export async function startEmbeddedFleet(leaseMillis: number): Promise<Fleet> {
  const folder = await mkdtemp(join(tmpdir(), 'baton-chaos-'))
  const node = await NodeProcess.start('alone', [...settings(leaseMillis), '--data', folder])
  return {
    nodes: [node],
    disturbances: [killNode([node]), freezeNode([node], leaseMillis)],
    audit: async () => {
      await node.kill()
      return auditEmbedded(folder)
    },
    dispose: async () => {
      await node.kill()
      await rm(folder, { recursive: true, force: true })
    },
  }
}
