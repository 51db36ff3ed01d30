import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { inCode, readDocument, root, sectionsOf } from './support/markdown.ts'

const documents = globSync(['*.md', '{docs,bench,examples}/**/*.md', 'packages/*/*.md', 'clients/*/*.md'], {
  cwd: root,
  exclude: ['**/node_modules/**'],
})

/** The anchor that GitHub generates for a heading. */
const anchorOf = (title: string) =>
  title
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replaceAll(' ', '-')

const anchorsOf = (document: string) => new Set(sectionsOf(document).map(({ title }) => anchorOf(title)))

const sources = globSync('packages/*/{src,test}/**/*.ts', { cwd: root })

const words = new Set(
  globSync('{packages,test,bench,examples,release}/**/*.{ts,tsx,json,yml}', {
    cwd: root,
    exclude: ['**/node_modules/**', '**/dist/**'],
  }).flatMap((path) => readFileSync(root + path, 'utf8').match(/\w+/g) ?? []),
)

const { scripts } = JSON.parse(readDocument('package.json')) as { scripts: Record<string, string> }

describe.each(documents)('%s', (path) => {
  const document = readDocument(path)
  const prose = document.replaceAll(/^```[\s\S]*?^```$/gm, '')

  test('has only links with a target', () => {
    const links = prose.matchAll(/\]\((?!https?:)([^)\s]+)\)|\b(?:src|srcset)="([^"]+)"/g)
    const targets = [...links].map((match) => match[1] ?? match[2] ?? '')
    const broken = targets.filter((target) => {
      const [file = '', anchor] = target.split('#')
      const linked = file === '' ? path : join(dirname(path), file)
      if (!existsSync(root + linked)) return true
      return anchor !== undefined && !anchorsOf(readDocument(linked)).has(anchor)
    })
    expect(broken).toEqual([])
  })

  test('names only files that exist', () => {
    const named = inCode(prose).filter((name) =>
      /^(?:packages|clients|test|docs|bench|examples|\.ci)\/\S+\.\w+$/.test(name),
    )
    expect(named.filter((name) => !existsSync(root + name))).toEqual([])
  })

  test('names only sources that exist, also without their package', () => {
    const named = inCode(prose).filter((name) => /^[\w-]+(?:\/[\w-]+)*\.ts$/.test(name))
    const exists = (name: string) =>
      existsSync(root + name) || sources.some((path) => path.endsWith(`/${name}`))
    expect(named.filter((name) => !exists(name))).toEqual([])
  })

  test('names only functions, types and fields that exist', () => {
    const named = inCode(prose).filter((name) => /^[A-Za-z]*[a-z][A-Z]\w*$/.test(name))
    expect(named.filter((name) => !words.has(name))).toEqual([])
  })

  test('names only scripts that exist', () => {
    const named = [...document.matchAll(/\bnpm run ([a-z][a-z:]*)/g)].map((match) => match[1] ?? '')
    expect(named.filter((name) => !Object.hasOwn(scripts, name))).toEqual([])
  })
})
