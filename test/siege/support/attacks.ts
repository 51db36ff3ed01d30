import { createServer } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { dial, dialTls, postHead, statusOf } from '../../support/hostile-client.ts'
import { stay } from './floods.ts'
import { siegeToken } from './siege-tokens.ts'

const MIB = 2 ** 20
const ADDRESS = '127.0.0.2'
const CONNECT_MILLIS = 2000
/** Of floods of connections. Without a rate, the attacker would soon run out of ports. */
const CONNECTIONS_PER_SECOND = 5000
const FLOOD_ADDRESSES = 7

/** One way to take the service down, continued until `over` is aborted. */
export interface Attack {
  readonly name: string
  /** The service's limit of open files. */
  readonly openFiles?: number
  readonly isSecure?: boolean
  readonly hasTokens?: boolean
  /** Of the service, beside the defaults. */
  readonly settings?: readonly string[]
  run(port: number, over: AbortSignal): Promise<void>
}

let opened = 0

/** How many connections this process has opened. */
export const connectionsOpened = () => opened

async function openOne(port: number, address = ADDRESS, how = dial): Promise<Socket> {
  const socket = await how(port, address, CONNECT_MILLIS)
  if (!socket.destroyed) opened += 1
  return socket
}

const open = (port: number, count: number, address?: string, how = dial): Promise<Socket[]> =>
  Promise.all(Array.from({ length: count }, () => openOne(port, address, how)))

function close(sockets: readonly Socket[]): void {
  for (const socket of sockets) socket.destroy()
}

async function until(over: AbortSignal, once: () => Promise<void>): Promise<void> {
  while (!over.aborted) await once()
}

/** Opens connections, `count` at a time from one address after the other. */
async function flood(
  port: number,
  over: AbortSignal,
  count: number,
  use: (sockets: Socket[]) => void,
  how = dial,
): Promise<void> {
  const began = performance.now()
  let rounds = 0
  await until(over, async () => {
    use(await open(port, count, `127.0.0.${10 + (rounds % FLOOD_ADDRESSES)}`, how))
    rounds += 1
    const dueAt = began + (rounds * count * 1000) / CONNECTIONS_PER_SECOND
    await stay(Math.max(0, dueAt - performance.now()), over)
  })
}

async function post(
  port: number,
  path: string,
  body: Buffer,
  over: AbortSignal,
  headers: Readonly<Record<string, string>> = {},
): Promise<void> {
  const [socket] = await open(port, 1)
  if (socket === undefined) return
  socket.write(postHead(path, body.length, headers))
  socket.write(body)
  await Promise.race([statusOf(socket), stay(60_000, over)])
  socket.destroy()
}

const emptyObjects = Buffer.from(`[${'{},'.repeat((16 * MIB - 16) / 3)}{}]`)
const manyLevels = Buffer.from(
  JSON.stringify(
    Array.from({ length: 100_000 }, (_, level) => ({
      taskId: 'bad',
      computeTableName: 'bad.table',
      partition_name: `bad-${level}-0`,
      record_count: 1,
      priorityLevel: level,
    })),
  ),
)
const get = (target: string, headers = '') => `GET ${target} HTTP/1.1\r\nHost: localhost\r\n${headers}\r\n`
const waitingPull = get('/pull?table=bad.table', 'Prefer: wait=60\r\n')
const chunked = postHead('/call-back', 0).replace('Content-Length: 0', 'Transfer-Encoding: chunked')

/** Behind all levels of honest producers, so that nobody pulls it. */
const LAST_LEVEL = 1_000_000
const large = Buffer.from(
  JSON.stringify(
    Array.from({ length: 50_000 }, (_, index) => ({
      taskId: 'bad',
      computeTableName: 'bad.table',
      partition_name: `bad-${LAST_LEVEL}-${index}`,
      record_count: 1,
      priorityLevel: LAST_LEVEL,
    })),
  ),
)

/** `count` names of the longest that fit into a request, other ones each time. */
function strangeNames(name: string, count: number, length: number): string {
  named += 1
  const names = Array.from({ length: count }, (_, at) => `${name}=bad.${named}-${at}-`.padEnd(length, 'x'))
  return names.join('&')
}
let named = 0

/** Sends requests on many connections, reads all answers, and hangs up in the middle of every round. */
const readAndLeave =
  (targets: readonly string[], count: number): Attack['run'] =>
  async (port, over) => {
    await post(port, '/call-back', large, over)
    await until(over, async () => {
      const sockets = await open(port, count)
      for (const [at, socket] of sockets.entries())
        socket.resume().write(get(targets[at % targets.length] as string))
      await stay(700, over)
      close(sockets)
    })
  }

/** Keeps connections busy with the same text: each sends it again when it has read that many answers. */
const keepSending =
  (texts: readonly string[], connections: number, times: number, how = dial): Attack['run'] =>
  async (port, over) => {
    const sockets = await open(port, connections, ADDRESS, how)
    for (const [at, socket] of sockets.entries()) {
      const text = (texts[at % texts.length] as string).repeat(times)
      let left = 0
      const send = () => {
        left += times
        socket.write(text)
      }
      socket.on('data', (chunk: Buffer) => {
        left -= chunk.toString('latin1').split('HTTP/1.1 ').length - 1
        if (left <= times / 2 && !over.aborted) send()
      })
      send()
    }
    await stay(600_000, over)
    close(sockets)
  }

const refusedOrCheap = [
  get('/nothing-here'),
  get('/livez'),
  get('/peer/stream'),
  get('/tasks', 'Baton-Forwarded: a.b\r\n'),
  'OPTIONS /tasks/a/partitions/b/release HTTP/1.1\r\nHost: localhost\r\n\r\n',
  'HEAD /tasks HTTP/1.1\r\nHost: localhost\r\n\r\n',
]

/** Of honest clients, called back before the attack. A later one would belong to whoever calls it back first. */
const STEADY_TASK = 'steady-0'

const descriptorOf = (taskId: string, level: number, index: number) => ({
  taskId,
  computeTableName: 'bad.table',
  partition_name: `${taskId}-${level}-${index}`,
  record_count: 1,
  priorityLevel: level,
})

export const attacks: readonly Attack[] = [
  {
    // For comparison: what any attacker on the same machine takes, by being there.
    name: 'no attack: a process that computes and sends nothing',
    run: (_port, over) =>
      until(over, async () => {
        for (const end = performance.now() + 20; performance.now() < end; );
        await stay(0, over)
      }),
  },
  {
    name: 'call-backs of 16 MiB of empty objects',
    run: (port, over) => until(over, () => post(port, '/call-back', emptyObjects, over)),
  },
  {
    name: '10,000 waiting pulls on one connection, then a hang-up',
    run: (port, over) =>
      until(over, async () => {
        const sockets = await open(port, 1)
        sockets[0]?.resume().write(waitingPull.repeat(10_000))
        await stay(500, over)
        close(sockets)
      }),
  },
  {
    name: 'more connections than file handles',
    openFiles: 1024,
    run: async (port, over) => {
      const sockets: Socket[] = []
      await flood(port, over, 200, (more) => {
        sockets.push(...more)
        close(sockets.splice(0, sockets.length - 1500))
      })
      close(sockets)
    },
  },
  {
    name: 'connections that come and go',
    run: (port, over) => flood(port, over, 300, close),
  },
  {
    name: 'thousands of connections at once',
    run: (port, over) => flood(port, over, 9000, close),
  },
  {
    name: 'eight call-backs of which one byte comes',
    run: async (port, over) => {
      const sockets = await open(port, 8)
      for (const socket of sockets) socket.write(`${postHead('/call-back', 16 * MIB)}[`)
      await stay(600_000, over)
      close(sockets)
    },
  },
  {
    name: '150 settles of 8 MiB, sent slowly',
    run: async (port, over) => {
      const piece = Buffer.alloc(MIB / 16, ' ')
      const begin = async (): Promise<Socket> => {
        const socket = await openOne(port)
        socket.resume().write(postHead('/settle', 8 * MIB))
        return socket
      }
      const sockets = await Promise.all(Array.from({ length: 150 }, begin))
      // A refused client starts again.
      for (let at = 0; !over.aborted; at = (at + 1) % sockets.length) {
        if (sockets[at]?.writable === true) sockets[at]?.write(piece)
        else sockets[at] = await begin()
        await stay(5, over)
      }
      close(sockets)
    },
  },
  {
    name: 'call-backs with 100,000 levels',
    run: (port, over) => until(over, () => post(port, '/call-back', manyLevels, over)),
  },
  {
    name: 'pipelined unknown paths, probes and peer paths',
    run: keepSending(refusedOrCheap, 50, 1000),
  },
  {
    name: 'the same over TLS',
    isSecure: true,
    run: keepSending(refusedOrCheap, 50, 1000, dialTls),
  },
  {
    name: 'TLS handshakes, and then a hang-up',
    isSecure: true,
    run: (port, over) => flood(port, over, 20, close, dialTls),
  },
  {
    name: 'plain HTTP on the port of TLS',
    isSecure: true,
    run: (port, over) =>
      until(over, async () => {
        const sockets = await open(port, 20)
        for (const socket of sockets) socket.end(get('/livez'))
        await Promise.race([Promise.all(sockets.map(statusOf)), stay(10_000, over)])
        close(sockets)
      }),
  },
  {
    name: 'a web page that pulls and cancels',
    run: keepSending(
      [
        get('/pull', 'Referer: http://foreign.example/page\r\n'),
        get('/pull?batch=1000', 'Sec-Fetch-Site: cross-site\r\n'),
        postHead(`/tasks/${STEADY_TASK}/cancel`, 0, { Origin: 'http://foreign.example' }),
        postHead('/tables/steady.table/settings', 0, { Referer: 'http://foreign.example/' }),
      ],
      50,
      1000,
    ),
  },
  {
    name: 'a producer that wants the tasks and the share of others',
    hasTokens: true,
    run: async (port, over) => {
      const headers = { Authorization: `Bearer ${siegeToken('bad')}` }
      const request = (method: string, path: string, body: unknown, more = {}) => {
        const text = JSON.stringify(body)
        return postHead(path, text.length, { ...headers, ...more }).replace('POST', method) + text
      }
      const greed = Array.from({ length: 20 }, (_, at) => {
        const own = `bad-${at}`
        return [
          request('POST', '/call-back', [descriptorOf(STEADY_TASK, 0, 99_999)]),
          request('PATCH', `/tasks/${STEADY_TASK}/settings`, { leaseSeconds: 1, maxLeases: 1 }),
          request('POST', `/tasks/${STEADY_TASK}/seal`, {}),
          request('PATCH', `/tasks/new-${at}/settings`, { maxLeases: 1 }),
          request('POST', '/call-back', [descriptorOf(own, 0, 0)], { 'Task-Settings': 'weight=100' }),
          request('POST', '/call-back', [descriptorOf(own, 0, 0)]),
        ]
      }).flat()
      const many = Array.from({ length: 50_000 }, (_, index) => descriptorOf('bad-many', 0, index))
      await Promise.all([
        keepSending(greed, 24, 20)(port, over),
        post(port, '/call-back', Buffer.from(JSON.stringify(many)), over, headers),
      ])
    },
  },
  {
    name: '90 receivers of webhooks that hang',
    settings: ['--webhook-networks', '127.0.0.0/8'],
    run: async (port, over) => {
      const receiver = createServer(() => {}).listen(0, '127.0.0.1')
      await new Promise((resolve) => receiver.once('listening', resolve))
      const { port: own } = receiver.address() as AddressInfo
      for (let at = 0; at < 90; at += 1) {
        const url = `http://127.0.0.1:${own}/${at}`
        await post(port, '/subscriptions', Buffer.from(JSON.stringify({ url })), over)
      }
      // Each makes an event for every receiver.
      for (let at = 0; !over.aborted; at += 1) {
        await post(port, '/call-back', Buffer.from(JSON.stringify([descriptorOf(`bad-${at}`, 0, 0)])), over)
        await post(port, `/tasks/bad-${at}/cancel`, Buffer.from('{}'), over)
      }
      receiver.closeAllConnections()
      receiver.close()
    },
  },
  {
    name: 'manifests and partition lists, then a hang-up',
    run: readAndLeave(['/tasks/bad/manifest', '/tasks/bad/partitions?limit=1000'], 500),
  },
  {
    name: 'grids, tables and instances, then a hang-up',
    run: readAndLeave(['/tasks/bad/grid', '/tables?limit=1000', '/instances?limit=1000&sort=leases'], 300),
  },
  {
    name: '9,000 waiting pulls with long filters',
    run: async (port, over) => {
      const sockets: Socket[] = []
      for (let of = 0; of < 90 && !over.aborted; of += 1) {
        const more = await open(port, 100)
        for (const socket of more)
          socket.resume().write(get(`/pull?${strangeNames('task', 50, 300)}`, 'Prefer: wait=60\r\n'))
        sockets.push(...more)
      }
      await stay(600_000, over)
      close(sockets)
    },
  },
  {
    name: 'pulls with names that nobody has',
    run: (port, over) =>
      Promise.all(
        Array.from({ length: 8 }, async () => {
          const [socket] = await open(port, 1)
          await until(over, async () => {
            socket?.write(get(`/pull?${strangeNames('table', 50, 500)}`))
            if (socket === undefined || (await statusOf(socket)) === undefined) await stay(1000, over)
          })
          socket?.destroy()
        }),
      ).then(() => undefined),
  },
  {
    name: 'pulls of ever new instances',
    run: (port, over) =>
      until(over, async () => {
        const [socket] = await open(port, 1)
        const pulls = Array.from({ length: 5000 }, () => {
          named += 1
          return get('/pull?table=bad.none', `X-Instance-Id: bad-${named}\r\n`)
        })
        socket?.write(pulls.join(''))
        let left = pulls.length
        await new Promise((resolve) => {
          const done = () => resolve(undefined)
          over.addEventListener('abort', done)
          socket?.once('close', done).on('data', (chunk: Buffer) => {
            left -= chunk.toString('latin1').split('HTTP/1.1 ').length - 1
            if (left <= 0) done()
          })
        })
        socket?.destroy()
      }),
  },
  {
    name: '4,000 call-backs of 100 KB that do not end',
    run: async (port, over) => {
      const sockets: Socket[] = []
      const body = postHead('/call-back', 200_000) + ' '.repeat(100_000)
      for (let of = 0; of < 40 && !over.aborted; of += 1) {
        const more = await open(port, 100)
        for (const socket of more) socket.resume().write(body)
        sockets.push(...more)
      }
      await stay(600_000, over)
      close(sockets)
    },
  },
  {
    name: '40 call-backs in chunks of one byte',
    run: async (port, over) => {
      const sockets = await open(port, 40)
      const chunks = Buffer.from('1\r\n \r\n'.repeat(10_000))
      for (const socket of sockets) {
        const send = () => {
          if (!over.aborted && !socket.destroyed) socket.write(chunks, send)
        }
        socket.resume().write(chunked, send)
      }
      await stay(600_000, over)
      close(sockets)
    },
  },
  {
    name: 'event streams, as many as there may be',
    run: async (port, over) => {
      const sockets = await open(port, 1000)
      for (const socket of sockets) socket.resume().write(get('/events'))
      await stay(600_000, over)
      close(sockets)
    },
  },
  {
    name: 'answers that are not read',
    run: async (port, over) => {
      const sockets: Socket[] = []
      await until(over, async () => {
        const more = await open(port, 10)
        for (const socket of more)
          socket.pause().write('GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(50))
        sockets.push(...more)
        await stay(100, over)
      })
      close(sockets)
    },
  },
]
