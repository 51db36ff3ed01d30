import { setTimeout as sleep } from 'node:timers/promises'
import type { NodeProcess } from '../../postgres/support/node-process.ts'
import { OUTAGE } from './database-disturbances.ts'
import type { Disturbance } from './fleet.ts'

/** The others have no leader for a moment, if it was this one. A node that has none has nothing to tell of. */
const explainsOf = (nodes: readonly NodeProcess[]) => (nodes.length > 1 ? { explains: OUTAGE } : {})

/** In the middle of whatever it does. Others have to finish it, until it is back. */
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

/** For up to three lease lengths; then it goes on as if nothing had happened, and believes what it knew before. */
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

/** Another node comes, is asked like the others, and leaves. Perhaps it comes because one of them is frozen, and takes over from it. */
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
