import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'

const CONNECT_MILLIS = 60_000

/** Opens a connection, optionally from another address of the loopback network. */
export async function dial(
  port: number,
  localAddress?: string,
  connectMillis = CONNECT_MILLIS,
): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port, ...(localAddress === undefined ? {} : { localAddress }) })
  socket.on('error', () => {})
  // When a flood fills the listen backlog, some connection attempts get no answer.
  const timer = setTimeout(() => socket.destroy(), connectMillis)
  await new Promise((resolve) => socket.once('connect', resolve).once('close', resolve))
  clearTimeout(timer)
  return socket
}

/** Opens a connection with TLS, to a service whose certificate is not checked. */
export async function dialTls(
  port: number,
  localAddress?: string,
  connectMillis = CONNECT_MILLIS,
): Promise<Socket> {
  const plain = await dial(port, localAddress, connectMillis)
  const socket = connectTls({ socket: plain, servername: 'localhost', rejectUnauthorized: false })
  socket.on('error', () => {})
  if (plain.destroyed) socket.destroy()
  await new Promise((resolve) => socket.once('secureConnect', resolve).once('close', resolve))
  return socket
}

/** Everything that arrives until `enough` returns true or the connection ends. */
export async function readUntil(socket: Socket, enough: (text: string) => boolean): Promise<string> {
  let text = ''
  return new Promise((resolve) => {
    const finish = () => {
      socket.off('data', take).off('close', finish)
      resolve(text)
    }
    const take = (chunk: Buffer) => {
      text += chunk.toString('latin1')
      if (enough(text)) finish()
    }
    socket.on('data', take).on('close', finish)
    if (socket.destroyed) finish()
  })
}

/** The status of the next answer; undefined when the connection ends without one. */
export async function statusOf(socket: Socket): Promise<number | undefined> {
  const text = await readUntil(socket, (seen) => seen.includes('\r\n\r\n'))
  const [, status] = /^HTTP\/1\.1 (\d{3})/.exec(text) ?? []
  return status === undefined ? undefined : Number(status)
}

export function postHead(
  path: string,
  length: number,
  headers: Readonly<Record<string, string>> = {},
): string {
  const lines = Object.entries({
    Host: '127.0.0.1',
    'Content-Type': 'application/json',
    'Content-Length': String(length),
    ...headers,
  }).map(([name, value]) => `${name}: ${value}\r\n`)
  return `POST ${path} HTTP/1.1\r\n${lines.join('')}\r\n`
}
