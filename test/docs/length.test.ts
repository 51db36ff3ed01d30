import { globSync } from 'node:fs'
import { expect, test } from 'vitest'
import { readDocument, root } from './support/markdown.ts'

/** All pages but the change log and the results that benchmarks write. */
const pages = globSync('**/*.md', {
  cwd: root,
  exclude: ['**/node_modules/**', '**/dist/**', 'bench/**', 'CHANGELOG.md'],
})

const wordsOf = (path: string) =>
  readDocument(path)
    .split(/\s+/)
    .filter((word) => word !== '').length

test('no page is too long to be read', () => {
  expect(pages.length).toBeGreaterThan(30)
  expect(pages.filter((path) => wordsOf(path) > 5000)).toEqual([])
})

test('the pages together are not too long', () => {
  expect(pages.reduce((words, path) => words + wordsOf(path), 0)).toBeLessThanOrEqual(40_000)
})
