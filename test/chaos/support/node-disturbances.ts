import { setTimeout as sleep } from 'node:timers/promises'
import type { NodeProcess } from '../../postgres/support/node-process.ts'
import { until } from '../../support/until.ts'
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

/** Another disturbance may restart a frozen leader, which leads again. */
const DEPOSED_MILLIS = 20_000

/** Freezes the leader until another node leads. It wakes up, finds that it was deposed, and follows. */
export function depose(nodes: readonly NodeProcess[]): Disturbance {
  return {
    name: 'depose',
    explains: OUTAGE,
    happen: async () => {
      const leader = await until(() => leaderAmong(nodes))
      const others = nodes.filter((node) => node !== leader)
      leader.signal('SIGSTOP')
      const enough = Date.now() + DEPOSED_MILLIS
      await until(async () => Date.now() > enough || (await leaderAmong(others)) !== undefined)
      leader.signal('SIGCONT')
    },
  }
}

async function leaderAmong(nodes: readonly NodeProcess[]): Promise<NodeProcess | undefined> {
  const leads = nodes.map(async ({ url }) => {
    const answer = await fetch(`${url}/test/instance-status`, { signal: AbortSignal.timeout(1000) })
    return ((await answer.json()) as { leadsSince?: string }).leadsSince !== undefined
  })
  const found = (await Promise.allSettled(leads)).findIndex(
    (answer) => answer.status === 'fulfilled' && answer.value,
  )
  return nodes[found]
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
