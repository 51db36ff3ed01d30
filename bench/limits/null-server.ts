import Fastify from 'fastify'

/**
 * The upper limit for any service on this framework: the same routes with fixed bodies of realistic size,
 * without validation, store or log. The difference to Baton is the cost of Baton's own work.
 */
const server = Fastify({ logger: false, bodyLimit: 64 * 1024 * 1024 })

const partition = {
  taskId: 'bench-1a2b3c-17',
  computeTableName: 'bench.result_17',
  partition_name: 'bench-1a2b3c-17-0-4242',
  record_count: 4242,
  priorityLevel: 0,
}

function partitions(count: number): unknown[] {
  return Array.from({ length: count }, () => ({
    ...partition,
    lease: {
      id: crypto.randomUUID(),
      attempt: 1,
      fencingToken: Date.now(),
      expiresAt: new Date().toISOString(),
      expiresInSeconds: 300,
    },
  }))
}

const cannedPulls = new Map<number, string>()
const cannedSettles = new Map<string, string>()

function pulled(count: number): string {
  const canned = cannedPulls.get(count) ?? JSON.stringify({ partitions: partitions(count) })
  cannedPulls.set(count, canned)
  return canned
}

function settled(count: number, next: number): string {
  const key = `${count},${next}`
  const ids = () => Array.from({ length: count }, () => crypto.randomUUID())
  const canned =
    cannedSettles.get(key) ?? JSON.stringify({ settled: ids(), refused: [], partitions: partitions(next) })
  cannedSettles.set(key, canned)
  return canned
}

function batchOf(prefer: string | string[] | undefined): number | undefined {
  if (typeof prefer !== 'string') return undefined
  const match = /batch=(\d+)/.exec(prefer)
  return match ? Number(match[1]) : undefined
}

server.get('/pull', (request, reply) => {
  reply.header('content-type', 'application/json; charset=utf-8')
  return reply.send(pulled(batchOf(request.headers['prefer']) ?? 1))
})

server.post('/settle', (request, reply) => {
  const count = Array.isArray(request.body) ? request.body.length : 0
  reply.header('content-type', 'application/json; charset=utf-8')
  return reply.send(settled(count, batchOf(request.headers['prefer']) ?? 0))
})

server.post('/call-back', (request, reply) => {
  const accepted = Array.isArray(request.body) ? request.body.length : 0
  return reply.send({ taskId: partition.taskId, accepted, duplicates: 0 })
})

process.stdout.write(`null server at ${await server.listen({ host: '127.0.0.1', port: 0 })}\n`)
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => process.exit(0))
