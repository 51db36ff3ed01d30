import { globSync, readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { describe, expect, test } from 'vitest'
import { importsOf, loadedWith, wayTo } from './support/imports.ts'
import { readDocument, root, sectionNamed, tableRows } from './support/markdown.ts'

/** The layers a request passes through, and what else of the repository each may import. */
const mayUse: Record<string, readonly string[]> = {
  'packages/protocol/src': [],
  'packages/server/src/handoff': ['packages/protocol/src'],
  'packages/server/src/handoff/views': ['packages/protocol/src', 'packages/server/src/handoff/rules'],
  'packages/server/src/disk': ['packages/protocol/src', 'packages/server/src/handoff'],
  'packages/server/src/cluster': ['packages/protocol/src', 'packages/server/src/handoff'],
  'packages/server/src/archive': [
    'packages/protocol/src',
    'packages/server/src/handoff',
    'packages/server/src/disk',
    'packages/server/src/version.ts',
  ],
  'packages/server/src/webhooks': [
    'packages/protocol/src',
    'packages/server/src/handoff',
    'packages/server/src/networks.ts',
    'packages/server/src/settings-files.ts',
  ],
  'packages/server/src/http': [
    'packages/server/src/webhooks',
    'packages/protocol/src',
    'packages/server/src/cluster',
    'packages/server/src/handoff',
    'packages/server/src/networks.ts',
    'packages/server/src/settings-files.ts',
    'packages/server/src/version.ts',
  ],
  'packages/client/src': ['packages/protocol/src'],
}

/**
 * Removes each name that uses none of the remaining ones. The names that are left use each other in a cycle.
 */
function circles(names: Iterable<string>, usedBy: (name: string) => readonly string[]): string[] {
  const left = new Set(names)
  for (let before = -1; before !== left.size; ) {
    before = left.size
    for (const name of left) if (!usedBy(name).some((used) => left.has(used))) left.delete(name)
  }
  return [...left]
}

describe('imports', () => {
  test.each(Object.entries(mayUse))('%s imports only what it may', (part, allowed) => {
    const sources = globSync(`${part}/**/*.ts`, { cwd: root }).filter((path) => !path.endsWith('.test.ts'))
    expect(sources.length).toBeGreaterThanOrEqual(5)
    const wrong = sources.flatMap((path) =>
      importsOf(path)
        .filter((used) => used.startsWith('packages/'))
        .filter((used) => ![part, ...allowed].some((known) => `${used}/`.startsWith(`${known}/`)))
        .map((used) => `${path} imports ${used}`),
    )
    expect(wrong).toEqual([])
  })

  test.each(['packages/server/src/http', 'packages/server/src/disk/postgres'])(
    'folders of %s have no import cycle',
    (part) => {
      const sources = globSync(`${part}/*/**/*.ts`, { cwd: root })
      const folderOf = (path: string) => path.slice(part.length + 1).split('/', 1)[0] ?? ''
      const uses = Map.groupBy(
        sources.flatMap((path) =>
          importsOf(path)
            .filter((used) => dirname(used).startsWith(`${part}/`) && folderOf(used) !== folderOf(path))
            .map((used) => ({ folder: folderOf(path), used: folderOf(used) })),
        ),
        ({ folder }) => folder,
      )
      const usedBy = (folder: string) => uses.get(folder)?.map(({ used }) => used) ?? []
      expect(circles(sources.map(folderOf), usedBy)).toEqual([])
    },
  )

  test.each([
    'packages/protocol/src',
    'packages/server/src',
    'packages/client/src',
    'packages/cli/src',
    'packages/dashboard/src',
  ])('files of %s have no import cycle', (part) => {
    const sources = globSync(`${part}/**/*.{ts,tsx}`, { cwd: root })
    expect(sources.length).toBeGreaterThan(5)
    expect(circles(sources, importsOf)).toEqual([])
  })

  test('the protocol imports no Node module, and the client only in files with an alternative for browsers', () => {
    const sources = globSync('packages/{protocol,client}/src/**/*.ts', {
      cwd: root,
      exclude: ['packages/client/src/node/*'],
    }).filter((path) => !path.endsWith('.test.ts'))
    expect(sources.filter((path) => importsOf(path).some((name) => name.startsWith('node:')))).toEqual([])
  })

  test('the rules of the hand-off import only each other and the protocol', () => {
    const sources = globSync('packages/server/src/handoff/rules/*.ts', { cwd: root })
    expect(sources.length).toBeGreaterThan(5)
    const known = ['packages/server/src/handoff/rules/', 'packages/protocol/src/']
    const others = sources.flatMap(importsOf).filter((used) => !known.some((start) => used.startsWith(start)))
    expect(others).toEqual([])
  })

  test.each(['packages/protocol/src/core.ts', 'packages/client/src/**/*.ts', 'packages/cli/src/**/*.ts'])(
    '%s does not load the schema library',
    (pattern) => {
      const sources = globSync(pattern, { cwd: root }).filter((path) => !path.endsWith('.test.ts'))
      expect(sources).not.toEqual([])
      expect(sources.flatMap((path) => wayTo('typebox', path) ?? [])).toEqual([])
    },
  )

  test('the entry without schemas exports everything that needs none', () => {
    const others = loadedWith('packages/protocol/src/index.ts').filter(
      (path) => path !== 'packages/protocol/src/core.ts',
    )
    expect(others.length).toBeGreaterThan(5)
    expect(others.filter((path) => wayTo('typebox', path) === undefined)).toEqual([])
  })

  test('the help of the command does not load the client', () => {
    expect(wayTo('packages/client/src', 'packages/cli/src/dispatch.ts')).toBeUndefined()
  })

  test('the service loads the client part of node:http only for clusters and webhooks', () => {
    const sources = globSync('packages/server/src/**/*.ts', { cwd: root })
    const clients = /^packages\/server\/src\/(?:cluster\/|webhooks\/posting\.ts$)/
    const others = sources.filter((path) => !clients.test(path))
    expect(others.filter((path) => loadedWith(path).includes('node:http'))).toEqual([])
  })

  test('times and names are converted to the wire format in one layer', () => {
    const sources = globSync('packages/server/src/{handoff,disk,cluster}/**/*.ts', { cwd: root })
    const translating = /\.toISOString\(|\bpartition_name\b/
    expect(sources.filter((path) => translating.test(readFileSync(root + path, 'utf8')))).toEqual([])
  })

  test('a disk is chosen in one place', () => {
    const sources = globSync('packages/server/src/*.ts', { cwd: root })
    const choosing = sources.filter((path) => importsOf(path).some((name) => name.includes('/disk/')))
    expect(choosing).toEqual(['packages/server/src/open-store.ts'])
  })
})

describe('docs/architecture.md', () => {
  const architecture = readDocument('docs/architecture.md')

  test('numbers its invariants without gaps', () => {
    const numbers = tableRows(sectionNamed(architecture, 'What always holds').text).map(([number]) => number)
    expect(numbers).toEqual(numbers.map((_, at) => `I${at + 1}`))
  })

  test('names a test for each invariant', () => {
    for (const [number, , , tests] of tableRows(sectionNamed(architecture, 'What always holds').text)) {
      expect(tests, `${number}`).toMatch(/test\//)
    }
  })
})
