import { globSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { metrics } from '../../packages/server/src/http/observability/metrics.ts'
import { blocks, blocksIn, withBlocks } from '../../release/docs/blocks.ts'
import { inCode, readDocument, root } from './support/markdown.ts'

const pages = globSync('docs/*.md', { cwd: root })

describe('the generated parts of the docs', () => {
  test.each(pages)('%s is as `npm run docs` writes it', async (path) => {
    const page = readDocument(path)
    expect(await withBlocks(page)).toBe(page)
  })

  test('each part is in one page', () => {
    const used = pages.flatMap((path) => blocksIn(readDocument(path)))
    expect(used.toSorted()).toEqual(Object.keys(blocks).toSorted())
  })
})

test.each(pages)('the metrics that %s mentions exist', (path) => {
  const names = new Set(metrics.map(({ name }) => name))
  const mentioned = inCode(readDocument(path)).flatMap((code) => /^baton_[a-z_]+/.exec(code)?.[0] ?? [])
  expect(mentioned.filter((name) => !names.has(name) && name !== 'baton_client')).toEqual([])
})
