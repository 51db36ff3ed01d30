import { afterAll, beforeAll } from 'vitest'
import { PostgresServer } from '../../../../test/postgres/support/postgres-server.ts'
import { openPostgresDisk, type PostgresDisk } from '../../src/disk/postgres/postgres-disk.ts'
import type { Disk } from '../../src/handoff/disk.ts'
import type { DiskHarness } from './conformance/harness.ts'

const node = { nodeId: 'node', url: null }

/** A real PostgreSQL, one server for all tests of a file and a database for each of them. */
export function postgresHarness(): DiskHarness {
  let server: PostgresServer
  beforeAll(async () => {
    server = await PostgresServer.start()
    await makeTemplate(server)
  })
  afterAll(() => server.dispose())
  return {
    name: 'PostgreSQL',
    async create() {
      const { url } = await server.createDatabase('template_of_disks')
      let disk = await openPostgresDisk({ url, node })
      const numbers = new Numbers()
      return {
        get disk() {
          return numbers.of(disk)
        },
        async crash() {
          const before = disk
          disk = await openPostgresDisk({ url, node })
          await before.close()
        },
        dispose: () => disk.close(),
      }
    },
  }
}

/** A database with the schema in it is copied several times faster than the schema is made. */
export async function makeTemplate(server: PostgresServer): Promise<void> {
  await server.query('CREATE DATABASE template_of_disks')
  const disk = await openPostgresDisk({ url: server.url('template_of_disks'), node })
  await disk.close()
}

/** Opening this disk appends an entry. The suite numbers its own entries alone. */
class Numbers {
  /** The numbers on the disk of the entries of the suite, by theirs. */
  readonly #numbers = [0]
  #last = 0

  of(disk: PostgresDisk): Disk {
    const own: Partial<Disk> = {
      open: async () => {
        const { last, unflushed, nextIds } = await disk.open()
        this.#last = last
        return { last: this.#numbers.length - 1, unflushed, nextIds }
      },
      append: async (entry) => {
        await disk.append({ ...entry, number: this.#last + 1 })
        this.#last += 1
        this.#numbers[entry.number] = this.#last
      },
      flush: (images, upTo) => disk.flush(images, this.#numberOf(upTo)),
    }
    return new Proxy(disk, {
      get(target, name) {
        if (name in own) return own[name as keyof Disk]
        const value = Reflect.get(target, name, target) as unknown
        return typeof value === 'function' ? value.bind(target) : value
      },
    })
  }

  #numberOf(upTo: number): number {
    return upTo === this.#numbers.length - 1 ? this.#last : (this.#numbers[upTo] ?? 0)
  }
}
