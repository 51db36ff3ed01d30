import type { Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import type { Chance } from '../../chaos/support/chance.ts'
import { dial, postHead } from '../../support/hostile-client.ts'

const KIB = 1024
const MIB = KIB * KIB
/** An attacker who is refused tries something else. */
const CONNECT_MILLIS = 2000

/** The target of a flood and its random choices. It ends by itself, at the latest when `over` is aborted. */
export interface Target {
  readonly port: number
  /** The source address. */
  readonly address: string
  readonly chance: Chance
  readonly over: AbortSignal
}

export type Flood = (target: Target) => Promise<void>

async function connections({ port, address }: Target, count: number): Promise<Socket[]> {
  const sockets = await Promise.all(Array.from({ length: count }, () => dial(port, address, CONNECT_MILLIS)))
  for (const socket of sockets) socket.resume()
  return sockets
}

/** Not longer than the siege. */
/** Waits, at most until the end. */
export const stay = (millis: number, over: AbortSignal) =>
  pause(millis, undefined, { signal: over }).catch(() => {})

function leave(sockets: readonly Socket[], chance: Chance): void {
  const ways = [() => {}, (socket: Socket) => socket.resetAndDestroy(), (socket: Socket) => socket.end()]
  for (const socket of sockets) {
    chance.pick(ways)(socket)
    setImmediate(() => socket.destroy())
  }
}

/** Sends a body on one connection, and waits a moment for the answer. */
async function post(target: Target, path: string, body: Buffer, headers = {}): Promise<void> {
  const [socket] = await connections(target, 1)
  if (socket === undefined) return
  socket.write(postHead(path, body.length, headers))
  socket.write(body)
  await Promise.race([
    new Promise((resolve) => socket.once('data', resolve).once('close', resolve)),
    stay(2000, target.over),
  ])
  socket.destroy()
}

const get = (path: string, headers = '') => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n${headers}\r\n`

export const floods: Readonly<Record<string, Flood>> = {
  'waiting pulls, sent ahead': async (target) => {
    const { chance, over } = target
    const sockets = await connections(target, chance.between(1, 5))
    for (const socket of sockets)
      socket.write(get('/pull', 'Prefer: wait=60\r\nX-Instance-Id: bad\r\n').repeat(chance.between(10, 3000)))
    await stay(chance.between(10, 1000), over)
    leave(sockets, chance)
  },

  connections: async (target) => {
    const sockets = await connections(target, target.chance.between(50, 400))
    await stay(target.chance.between(100, 2000), target.over)
    leave(sockets, target.chance)
  },

  'slow call-backs': async (target) => {
    const { chance, over } = target
    const sockets = await connections(target, chance.between(5, 60))
    for (const socket of sockets) socket.write(postHead('/call-back', 16 * MIB))
    for (let times = 0; times < 20 && !over.aborted; times += 1) {
      for (const socket of sockets) socket.write(' ')
      await stay(100, over)
    }
    leave(sockets, chance)
  },

  'settles that do not end': async (target) => {
    const { chance, over } = target
    const length = chance.between(1, 8) * MIB
    const sockets = await connections(target, chance.between(2, 12))
    for (const socket of sockets) {
      socket.write(postHead('/settle', length))
      socket.write(Buffer.alloc(length - 1, ' '))
    }
    await stay(chance.between(500, 3000), over)
    leave(sockets, chance)
  },

  'many elements': (target) => {
    const unit = target.chance.pick(['{},', '[],', '0,', '"",', 'null,'])
    const count = target.chance.between(600_000, 900_000)
    return post(
      target,
      target.chance.pick(['/call-back', '/settle', '/renew']),
      Buffer.from(`[${unit.repeat(count)}0]`),
    )
  },

  'deep nesting': (target) =>
    post(target, '/call-back', Buffer.alloc(target.chance.between(1, 2) * MIB, '[')),

  'many levels': (target) => {
    const levels = Array.from({ length: 12_000 }, (_, level) => ({
      taskId: 'bad',
      computeTableName: 'bad.table',
      partition_name: `bad-${level}-0`,
      record_count: 1,
      priorityLevel: level,
    }))
    return post(target, '/call-back', Buffer.from(JSON.stringify(levels)))
  },

  'compressed bombs': (target) => {
    const path = target.chance.pick(['/call-back', '/settle', '/renew'])
    return post(target, path, bomb, { 'Content-Encoding': 'gzip' })
  },

  'answers that are not read': async (target) => {
    const { chance, over } = target
    const sockets = await connections(target, chance.between(2, 20))
    const path = chance.pick(['/tasks?limit=1000', '/openapi.json', '/docs', '/metrics', '/events'])
    for (const socket of sockets) {
      socket.pause()
      socket.write(get(path).repeat(chance.between(1, 40)))
    }
    await stay(chance.between(500, 4000), over)
    leave(sockets, chance)
  },

  'slow headers': async (target) => {
    const { chance, over } = target
    const sockets = await connections(target, chance.between(5, 60))
    for (const socket of sockets) socket.write('GET /pull HTTP/1.1\r\nHost: localhost\r\n')
    for (let times = 0; times < 20 && !over.aborted; times += 1) {
      for (const socket of sockets) socket.write(`X-${times}: ${'a'.repeat(chance.between(1, 500))}\r\n`)
      await stay(100, over)
    }
    leave(sockets, chance)
  },

  noise: async (target) => {
    const { chance, over } = target
    const sockets = await connections(target, chance.between(1, 20))
    for (const socket of sockets)
      socket.write(Buffer.from(Array.from({ length: chance.between(1, 400) }, () => chance.below(256))))
    await stay(chance.between(10, 300), over)
    leave(sockets, chance)
  },

  'requests that are cut': async (target) => {
    const { chance, over } = target
    const body = JSON.stringify([{ leaseId: '1-1-aaaaaaaaaaaaaaaa', outcome: 'done' }])
    const whole = `${get('/pull', 'X-Instance-Id: bad\r\n')}${postHead('/settle', body.length)}${body}${get('/tasks')}`
    const sockets = await connections(target, chance.between(1, 30))
    for (const socket of sockets) {
      socket.write(whole.slice(0, chance.between(1, whole.length)))
      if (chance.happens(0.3)) socket.end()
    }
    await stay(chance.between(1, 500), over)
    leave(sockets, chance)
  },

  'requests in bulk': async (target) => {
    const { chance, over } = target
    const sockets = await connections(target, chance.between(1, 20))
    const path = chance.pick([
      '/livez',
      '/tasks',
      '/totals',
      '/instances',
      '/nowhere',
      '/test/instance-status',
    ])
    for (const socket of sockets) socket.write(get(path).repeat(chance.between(10, 300)))
    await stay(chance.between(100, 1500), over)
    leave(sockets, chance)
  },
}

let bomb = Buffer.alloc(0)

/**
 * Slow preparations are made before the siege: they would block the honest clients, which share this process.
 */
export function prepareFloods(): void {
  if (bomb.length === 0) bomb = gzipSync(Buffer.alloc(64 * MIB, ' '))
}
