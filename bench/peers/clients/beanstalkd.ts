import { connect, type Socket } from 'node:net'
import { consumeInLoops, descriptor, type PeerClient } from '../peer-client.ts'

/** Its protocol is line-based, so a minimal client is a few dozen lines. */
class Connection {
  readonly #socket: Socket
  #received = ''
  #onReceived: (() => void) | undefined

  constructor(port: number) {
    this.#socket = connect({ host: '127.0.0.1', port, noDelay: true })
    this.#socket.on('data', (chunk) => {
      this.#received += chunk.toString('latin1')
      this.#onReceived?.()
    })
    this.#socket.on('error', () => {})
  }

  write(text: string): void {
    this.#socket.write(text, 'latin1')
  }

  /** The next line without its line ending. */
  async line(): Promise<string> {
    for (;;) {
      const end = this.#received.indexOf('\r\n')
      if (end !== -1) {
        const line = this.#received.slice(0, end)
        this.#received = this.#received.slice(end + 2)
        return line
      }
      await this.#more()
    }
  }

  async bytes(count: number): Promise<void> {
    while (this.#received.length < count) await this.#more()
    this.#received = this.#received.slice(count)
  }

  #more(): Promise<void> {
    return new Promise((resolve) => {
      this.#onReceived = resolve
    })
  }
}

const PUTS_AT_ONCE = 200

export async function connectBeanstalkd({ port }: { port: number }): Promise<PeerClient> {
  const producer = new Connection(port)
  const consumers: Connection[] = []
  const held = new Map<number, string>()

  const reserved = async (connection: Connection): Promise<string | undefined> => {
    const [word, id, bytes] = (await connection.line()).split(' ')
    if (word !== 'RESERVED' || id === undefined) return undefined
    await connection.bytes(Number(bytes) + 2)
    return id
  }
  const of = (consumer: number): Connection => {
    consumers[consumer] ??= new Connection(port)
    return consumers[consumer]
  }
  const reserveThenDelete = async (consumer: number): Promise<number> => {
    const connection = of(consumer)
    connection.write('reserve-with-timeout 0\r\n')
    const id = await reserved(connection)
    if (id === undefined) return 0
    connection.write(`delete ${id}\r\n`)
    return (await connection.line()) === 'DELETED' ? 1 : 0
  }
  /** Sends both commands in one write: the next job is reserved while the last one is deleted. */
  const deleteAndReserve = async (consumer: number): Promise<number> => {
    const connection = of(consumer)
    const last = held.get(consumer)
    connection.write(`${last === undefined ? '' : `delete ${last}\r\n`}reserve-with-timeout 0\r\n`)
    if (last !== undefined) await connection.line()
    const id = await reserved(connection)
    if (id === undefined) return 0
    held.set(consumer, id)
    return 1
  }
  return {
    async fill(partitions) {
      for (let left = partitions; left > 0; left -= PUTS_AT_ONCE) {
        const count = Math.min(PUTS_AT_ONCE, left)
        let puts = ''
        for (let put = 0; put < count; put++) {
          const body = JSON.stringify(descriptor())
          puts += `put 1024 0 300 ${body.length}\r\n${body}\r\n`
        }
        producer.write(puts)
        for (let put = 0; put < count; put++) await producer.line()
      }
    },
    consume: async (input) => {
      if (input.way === 'one by one') return consumeInLoops(input, reserveThenDelete)
      const result = await consumeInLoops(input, deleteAndReserve)
      for (const [consumer, id] of held) {
        of(consumer).write(`delete ${id}\r\n`)
        await of(consumer).line()
      }
      held.clear()
      return result
    },
  }
}
