import { setTimeout as sleep } from 'node:timers/promises'
import type { NodeProcess } from '../../postgres/support/node-process.ts'
import { OUTAGE } from './database-disturbances.ts'
import type { Disturbance } from './fleet.ts'

/**
 * The other nodes have no leader for a moment if this node was the leader. A single node has no others that
 * could log an error.
 */
const explainsOf = (nodes: readonly NodeProcess[]) => (nodes.length > 1 ? { explains: OUTAGE } : {})

/** Kills a node at any moment. Other nodes have to finish its work until it is back. */
export function killNode(nodes: readonly NodeProcess[]): Disturbance {
  return {
    name: 'kill',
    ...explainsOf(nodes),
    happen: async (chance) => {
      const node = chance.pick(nodes)
      await node.kill()
      await sleep(chance.below(500))
      await node.startUntilItRuns()
    },
  }
}

/** Freezes a node for up to three lease lengths. Then it continues with its outdated state. */
export function freezeNode(nodes: readonly NodeProcess[], leaseMillis: number): Disturbance {
  return {
    name: 'freeze',
    ...explainsOf(nodes),
    happen: async (chance) => {
      const node = chance.pick(nodes)
      node.signal('SIGSTOP')
      await sleep(chance.between(leaseMillis * 1.2, leaseMillis * 3))
      node.signal('SIGCONT')
    },
  }
}

/**
 * Another node joins, receives requests like the others, and leaves. It may join while another node is
 * frozen, and take over from it.
 */
export function visit(nodes: readonly NodeProcess[], visitor: NodeProcess): Disturbance {
  return {
    name: 'visit',
    explains: OUTAGE,
    happen: async (chance) => {
      const frozen = chance.happens(0.5) ? chance.pick(nodes) : undefined
      frozen?.signal('SIGSTOP')
      await visitor.startUntilItRuns()
      visitor.isAway = false
      await sleep(chance.between(200, 1000))
      frozen?.signal('SIGCONT')
      await sleep(chance.between(200, 1000))
      visitor.isAway = true
      await visitor.kill()
    },
  }
}
