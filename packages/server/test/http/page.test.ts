import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import Fastify from 'fastify'
import { describe, expect, test } from 'vitest'
import { type PageFile, pageRoutes, readPageFiles } from '../../src/http/routes/page-routes.ts'

const files = readPageFiles()
const assets = [...files.keys()].filter((path) => path.startsWith('assets/'))

function served(given: ReadonlyMap<string, PageFile> = files, prefix = '') {
  const app = Fastify()
  app.register(async (routes) => pageRoutes(routes, given), { prefix })
  return app
}

describe('the page', () => {
  test('is built, and below its maximum size', () => {
    expect(files.has('index.html') && files.has('docs.html')).toBe(true)
    const sent = [...files.values()].map(({ body, brotli }) => (brotli ?? body).length)
    expect(sent.reduce((sum, size) => sum + size, 0)).toBeLessThan(150_000)
  })

  test('is revalidated each time, and not sent again if unchanged', async () => {
    const first = await served().inject('/')
    expect(first.statusCode).toBe(200)
    expect(first.headers['content-type']).toBe('text/html; charset=utf-8')
    expect(first.headers['cache-control']).toBe('no-cache')
    const again = await served().inject({
      url: '/',
      headers: { 'if-none-match': String(first.headers.etag) },
    })
    expect([again.statusCode, again.body]).toEqual([304, ''])
  })

  test('allows no scripts or resources from other origins', async () => {
    for (const url of ['/', '/docs']) {
      const { headers, body } = await served().inject(url)
      expect(headers['content-security-policy']).toContain("default-src 'none'; script-src 'self'")
      expect(headers['x-content-type-options']).toBe('nosniff')
      expect(body).not.toMatch(/(?:src|href)="(?:https?:)?\/\//)
    }
  })

  test.each(assets)('%s is cached forever, and compressed as the client accepts', async (path) => {
    const plain = await served().inject(`/${path}`)
    expect(plain.headers['cache-control']).toBe('public, max-age=31536000, immutable')
    expect(plain.headers['content-encoding']).toBeUndefined()
    if (path.endsWith('.woff2')) return
    const brotli = await served().inject({ url: `/${path}`, headers: { 'accept-encoding': 'gzip, br' } })
    expect(brotli.headers['content-encoding']).toBe('br')
    expect(brotliDecompressSync(brotli.rawPayload).equals(plain.rawPayload)).toBe(true)
    const gzip = await served().inject({ url: `/${path}`, headers: { 'accept-encoding': 'gzip, br;q=0' } })
    expect(gzip.headers['content-encoding']).toBe('gzip')
    expect(gunzipSync(gzip.rawPayload).equals(plain.rawPayload)).toBe(true)
  })

  test.each([
    '/assets/../index.html',
    '/assets/..%2f..%2fpackage.json',
    '/..%2fpackage.json',
    '/%2e%2e/package.json',
    '/assets/',
    '/index.html.br',
    '/package.json',
  ])('is not found at %s', async (url) => {
    expect((await served().inject(url)).statusCode).toBe(404)
  })

  test('works below a base path: the trailing slash is added, and links are relative', async () => {
    const app = served(files, '/data/baton')
    const bare = await app.inject('/data/baton')
    expect([bare.statusCode, bare.headers.location]).toEqual([308, 'baton/'])
    const { body } = await app.inject('/data/baton/')
    const links = [...body.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, link]) => link)
    expect(links.length).toBeGreaterThan(2)
    for (const link of links) expect(link).not.toMatch(/^\//)
  })

  test('is replaced by a short explanation if it was not built', async () => {
    for (const url of ['/', '/docs']) {
      const { statusCode, body } = await served(new Map()).inject(url)
      expect(statusCode).toBe(200)
      expect(body).toContain('npm ci')
    }
  })
})
