import { existsSync, symlinkSync } from 'node:fs'
import { readdir, readlink, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Scratch } from '../../test/support/scratch.ts'
import type { Source } from './json-values.ts'
import { SpoolError, spool } from './spool.ts'

const bytes = (text: string) => new TextEncoder().encode(text)

/** Pauses between two chunks, so that an error occurs while no read is pending. */
const slowly = (...texts: string[]): Source => ({
  name: 'stdin',
  chunks: async function* () {
    for (const text of texts) {
      yield bytes(text)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  },
})

async function all({ chunks }: Source): Promise<string> {
  const parts: Uint8Array[] = []
  for await (const chunk of chunks()) parts.push(chunk)
  return Buffer.concat(parts).toString()
}

let folder: string

beforeEach(() => {
  folder = new Scratch().path
  vi.stubEnv('TMPDIR', folder)
})

afterEach(() => {
  vi.unstubAllEnvs()
})

test('a stream can be read twice, and leaves no file', async () => {
  {
    await using twice = await spool(slowly('one ', 'two'))
    expect(await all(twice.first)).toBe('one two')
    expect(await all(twice.again)).toBe('one two')
  }
  expect(await readdir(folder)).toEqual([])
})

test.skipIf(!existsSync('/proc/self/fd'))('a reader that stops leaves no open file', async () => {
  const openHere = async () => {
    const files = (await readdir('/proc/self/fd')).map((fd) =>
      readlink(`/proc/self/fd/${fd}`).catch(() => ''),
    )
    return (await Promise.all(files)).filter((path) => path.startsWith(folder))
  }
  await using twice = await spool(slowly('one ', 'two', 'three'))
  const reading = twice.first.chunks()[Symbol.asyncIterator]()
  await reading.next()
  await reading.next()
  expect(await openHere()).toHaveLength(1)
  await reading.return?.()
  expect(await openHere()).toEqual([])
})

test('a missing folder is reported', async () => {
  await using twice = await spool(slowly('one ', 'two'))
  await rm(folder, { recursive: true })
  await expect(all(twice.first)).rejects.toThrow(SpoolError)
})

test.skipIf(!existsSync('/dev/full'))('a full disk is reported', async () => {
  await using twice = await spool(slowly('one ', 'two'))
  const [own = ''] = await readdir(folder)
  symlinkSync('/dev/full', join(folder, own, 'input'))
  await expect(all(twice.first)).rejects.toThrow(
    `stdin cannot be stored in ${folder} for the check (ENOSPC): set another folder with TMPDIR, or use --stream`,
  )
})
