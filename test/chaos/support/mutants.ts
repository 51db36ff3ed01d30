import { randomBytes, randomUUID } from 'node:crypto'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { PartitionDescriptor, PullAnswer, PulledPartition, SettleAnswer } from '@baton/protocol'
import { startEmbeddedFleet } from './embedded-fleet.ts'
import type { Fleet } from './fleet.ts'

interface Heard {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** A service with a defect: a correct service behind a proxy that changes requests and answers. */
export interface Mutant {
  readonly name: string
  /** The finding that the checker has to report. */
  readonly finding: RegExp
  /** A new one for each run, since it may have state. */
  make(): { hear?: (heard: Heard) => Heard; say?: (said: string, heard: Heard) => string }
}

const HIGHEST = 9

export const mutants: readonly Mutant[] = [
  {
    name: 'hands out the highest level first',
    finding: /its level goes first/,
    make: () => ({
      hear: (heard) => reordered(heard, (descriptors) => descriptors.map(turned)),
      say: (said) =>
        said
          .replaceAll(/"partition_name":"([^"]*)-(\d+)-(\d+)"/g, (_, task, level, index) => {
            return `"partition_name":"${task}-${HIGHEST - Number(level)}-${index}"`
          })
          .replaceAll(/"priorityLevel":(\d+)/g, (_, level) => `"priorityLevel":${HIGHEST - Number(level)}`),
    }),
  },
  {
    name: 'hands out the end of an array first',
    finding: /not in the order of the call-back/,
    make: () => ({ hear: (heard) => reordered(heard, (descriptors) => descriptors.toReversed()) }),
  },
  {
    name: 'forgets a fifth of the keys',
    finding: /key \S+ has taken more than once|the repeat of key .* has \d+ new leases/,
    make: () => ({
      hear: (heard) => {
        const key = heard.headers['idempotency-key']
        if (key === undefined || Number.parseInt(key.slice(0, 8), 16) % 5 > 0) return heard
        return { ...heard, headers: { ...heard.headers, 'idempotency-key': randomUUID() } }
      },
    }),
  },
  {
    name: 'leaves out a lease when a pull is repeated',
    finding: /the repeat of key .* lacks \d+ leases that live/,
    make: () => {
      const answered = new Set<string>()
      return {
        say: (said, { path, headers }) => {
          const key = headers['idempotency-key']
          if (path !== '/pull' || key === undefined) return said
          const answer = JSON.parse(said) as PullAnswer
          const isRepeat = answered.has(key)
          if (answer.partitions.length > 0) answered.add(key)
          return isRepeat ? JSON.stringify({ partitions: answer.partitions.slice(1) }) : said
        },
      }
    },
  },
  {
    name: 'gives a partition to two live leases',
    finding: /two live leases/,
    make: () => {
      let last: PulledPartition | undefined
      return {
        say: (said, { path, headers }) => {
          if (path !== '/pull' || headers['idempotency-key'] === undefined) return said
          const { partitions } = JSON.parse(said) as PullAnswer
          const again = last === undefined ? [] : [underAnotherLease(last)]
          last = partitions.length > 5 ? partitions.at(-1) : undefined
          return JSON.stringify({ partitions: [...partitions.slice(again.length), ...again] })
        },
      }
    },
  },
  {
    name: 'gives the fencing tokens of a slow clock',
    finding: /a fencing token did not grow/,
    make: () => ({
      say: (said) => said.replaceAll(/("fencingToken":\d+)\d{7}/g, (_, token) => `${token}0000000`),
    }),
  },
  {
    name: 'allows a table more leases than its limit',
    finding: /leases where \d+ are allowed/,
    make: () => ({
      hear: (heard) =>
        heard.path.startsWith('/tables/') ? { ...heard, body: JSON.stringify({ maxLeases: 100 }) } : heard,
    }),
  },
  {
    name: 'forgets some checkpoints',
    finding: /the checkpoint of \S+ was followed by undefined/,
    make: () => ({ say: (said) => said.replaceAll(/,"checkpoint":"[0-9a-z]*[02468]-[^"]*"/g, '') }),
  },
  {
    name: 'loses settles that it acknowledges',
    finding: /handed out again after it was done/,
    make: () => {
      const lost = new Map<Heard, string>()
      let count = 0
      return {
        hear: (heard) => {
          if (heard.path !== '/settle') return heard
          const settlements = JSON.parse(heard.body) as { leaseId: string; outcome: string }[]
          const [first, ...rest] = settlements
          if (first?.outcome !== 'done' || rest.length === 0 || ++count % 5 > 0) return heard
          const changed = { ...heard, body: JSON.stringify(rest) }
          lost.set(changed, first.leaseId)
          return changed
        },
        say: (said, heard) => {
          const leaseId = lost.get(heard)
          if (leaseId === undefined) return said
          const answer = JSON.parse(said) as SettleAnswer
          return JSON.stringify({ ...answer, settled: [leaseId, ...answer.settled] })
        },
      }
    },
  },
]

function reordered(
  heard: Heard,
  order: (descriptors: PartitionDescriptor[]) => PartitionDescriptor[],
): Heard {
  if (heard.path !== '/call-back') return heard
  const descriptors = order(JSON.parse(heard.body) as PartitionDescriptor[])
  return { ...heard, body: JSON.stringify(descriptors.toSorted((a, b) => a.priorityLevel - b.priorityLevel)) }
}

function turned(descriptor: PartitionDescriptor): PartitionDescriptor {
  const level = HIGHEST - descriptor.priorityLevel
  const index = descriptor.partition_name.split('-').at(-1)
  return { ...descriptor, priorityLevel: level, partition_name: `${descriptor.taskId}-${level}-${index}` }
}

function underAnotherLease(partition: PulledPartition): PulledPartition {
  const { lease } = partition
  if (lease === null) return partition
  const [number, leaseNumber] = lease.id.split('-')
  const later = (Number.parseInt(leaseNumber ?? '1', 36) + 1).toString(36)
  const secret = randomBytes(12).toString('base64url')
  return { ...partition, lease: { ...lease, id: `${number}-${later}-${secret}` } }
}

/** A node with its embedded store, and the mutant in front of it. */
export async function startMutantFleet(mutant: Mutant, leaseMillis: number): Promise<Fleet> {
  const fleet = await startEmbeddedFleet(leaseMillis)
  const [node] = fleet.nodes
  if (node === undefined) throw new Error('a fleet has a node')
  const { hear = (heard) => heard, say = (said) => said } = mutant.make()
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const { url: path = '/', method = 'GET' } = request
    const heard = hear({ path, headers: endToEnd(request.headers), body: Buffer.concat(chunks).toString() })
    const body = heard.body === '' ? {} : { body: heard.body }
    const answer = await fetch(node.url + heard.path, { method, headers: heard.headers, ...body })
    const said = await answer.text()
    const type = answer.headers.get('content-type') ?? 'application/json'
    response.writeHead(answer.status, { 'content-type': type })
    response.end(answer.status === 200 ? say(said, heard) : said)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    ...fleet,
    nodes: [{ name: node.name, url, isAway: false, ends: 0, log: '', errors: [] }],
    dispose: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      await fleet.dispose()
    },
  }
}

const OF_THE_CONNECTION = ['host', 'connection', 'content-length', 'transfer-encoding', 'accept-encoding']

function endToEnd(headers: IncomingHttpHeaders): Record<string, string> {
  const entries = Object.entries(headers).filter(([name]) => !OF_THE_CONNECTION.includes(name))
  return Object.fromEntries(entries.map(([name, value]) => [name, String(value)]))
}
