import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'

export interface PageFile {
  readonly type: string
  readonly etag: string
  readonly body: Buffer
  /** Written beside the file when the page was built. */
  readonly brotli: Buffer | undefined
  readonly gzip: Buffer | undefined
}

/** In the published package the page lies beside the code; in the repository it is a package of its own. */
const folders = [
  new URL('../../page/', import.meta.url),
  new URL('../../../../dashboard/dist/', import.meta.url),
]

const mediaTypes: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
  '.txt': 'text/plain; charset=utf-8',
}

/**
 * The built page by path, all of it in memory: it is small, and a request can only ever name what was found here.
 * Empty when the page was not built.
 */
export function readPageFiles(): ReadonlyMap<string, PageFile> {
  const files = new Map<string, PageFile>()
  const folder = folders.map((url) => fileURLToPath(url)).find((path) => existsSync(`${path}index.html`))
  if (folder === undefined) return files
  for (const path of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    const type = mediaTypes[extname(path)]
    if (type === undefined) continue
    const body = readFileSync(folder + path)
    files.set(path.replaceAll('\\', '/'), {
      type,
      etag: `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`,
      body,
      brotli: readIfThere(`${folder}${path}.br`),
      gzip: readIfThere(`${folder}${path}.gz`),
    })
  }
  return files
}

function readIfThere(path: string): Buffer | undefined {
  return existsSync(path) ? readFileSync(path) : undefined
}
