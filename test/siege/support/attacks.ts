import type { Socket } from 'node:net'
import { dial, postHead, statusOf } from '../../support/hostile-client.ts'
import { stay } from './floods.ts'

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
  run(port: number, over: AbortSignal): Promise<void>
}

let opened = 0

/** How many connections this process has opened. */
export const connectionsOpened = () => opened

async function openOne(port: number, address = ADDRESS): Promise<Socket> {
  const socket = await dial(port, address, CONNECT_MILLIS)
  if (!socket.destroyed) opened += 1
  return socket
}

const open = (port: number, count: number, address?: string): Promise<Socket[]> =>
  Promise.all(Array.from({ length: count }, () => openOne(port, address)))

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
): Promise<void> {
  const began = performance.now()
  let rounds = 0
  await until(over, async () => {
    use(await open(port, count, `127.0.0.${10 + (rounds % FLOOD_ADDRESSES)}`))
    rounds += 1
    const dueAt = began + (rounds * count * 1000) / CONNECTIONS_PER_SECOND
    await stay(Math.max(0, dueAt - performance.now()), over)
  })
}

async function post(port: number, path: string, body: Buffer, over: AbortSignal): Promise<void> {
  const [socket] = await open(port, 1)
  if (socket === undefined) return
  socket.write(postHead(path, body.length))
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
const waitingPull = 'GET /pull?table=bad.table HTTP/1.1\r\nHost: localhost\r\nPrefer: wait=60\r\n\r\n'

export const attacks: readonly Attack[] = [
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
