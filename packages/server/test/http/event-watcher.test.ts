import { EventEmitter } from 'node:events'
import type { ServerResponse } from 'node:http'
import { describe, expect, test } from 'vitest'
import type { Tick } from '../../src/handoff/change-stream.ts'
import { EventWatcher } from '../../src/http/routes/events-route.ts'

/** A connection whose reader reads only when the test says so. */
class Connection extends EventEmitter {
  readonly written: string[] = []
  writableLength = 0
  destroyed = false

  write(text: string | Buffer): boolean {
    this.written.push(text.toString())
    this.writableLength += text.length
    return true
  }

  end(): void {}

  destroy(): void {
    this.destroyed = true
  }

  takeAll(): void {
    this.writableLength = 0
    this.emit('drain')
  }

  get waiting(): number {
    return this.writableLength
  }
}

const reason = 'x'.repeat(10_000)

function tick(id: number): Tick {
  const notice = { taskId: 'orders', level: 0, index: id, spelling: null, attempts: 5, reason }
  return { id: `life-${id}`, events: [{ kind: 'parked', notice }] }
}

function watch() {
  const connection = new Connection()
  const watcher = new EventWatcher(connection as unknown as ServerResponse)
  return { connection, watcher }
}

describe('a reader that is too slow', () => {
  test('has a bounded buffer, however long it does not read', () => {
    const { connection, watcher } = watch()
    for (let id = 0; id < 10_000; id += 1) watcher.send(tick(id))
    expect(connection.waiting).toBeLessThan(600_000)
  })

  test('gets a request to reload when it has caught up, and then later events', () => {
    const { connection, watcher } = watch()
    for (let id = 0; id < 1000; id += 1) watcher.send(tick(id))
    connection.takeAll()
    expect(connection.written.at(-1)).toBe('id: life-999\nevent: reset\ndata: {}\n\n')
    watcher.send(tick(1000))
    expect(connection.written.at(-1)).toContain('id: life-1000\nevent: parked\n')
  })

  test('is disconnected when it reads nothing for several heartbeats', () => {
    const { connection, watcher } = watch()
    for (let id = 0; id < 1000; id += 1) watcher.send(tick(id))
    for (let beats = 0; beats < 2; beats += 1) watcher.beat()
    expect(connection.destroyed).toBe(false)
    watcher.beat()
    expect(connection.destroyed).toBe(true)
  })

  test('costs the others nothing: each event is written once for all', () => {
    const [one, other] = [watch(), watch()]
    const shared = tick(1)
    let made = 0
    const counted = {
      ...shared,
      get events() {
        made += 1
        return shared.events
      },
    }
    one.watcher.send(counted)
    const after = made
    other.watcher.send(counted)
    expect(made).toBe(after)
    expect(other.connection.written).toEqual(one.connection.written)
  })
})
