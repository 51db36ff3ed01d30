import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import type { Plugin } from 'vite'

/** Compressing a smaller file saves less than its headers add. */
const SMALLEST_WORTHWHILE = 512

/** Writes a .br and a .gz next to each text file, so that the service has nothing to compress. */
export function compressedAssets(): Plugin {
  return {
    name: 'compressed-assets',
    apply: 'build',
    writeBundle({ dir }) {
      if (dir === undefined) return
      for (const path of readdirSync(dir, { recursive: true, encoding: 'utf8' })) {
        if (!/\.(?:html|js|css|svg|txt)$/.test(path)) continue
        const content = readFileSync(join(dir, path))
        if (content.length < SMALLEST_WORTHWHILE) continue
        const hint = { [constants.BROTLI_PARAM_SIZE_HINT]: content.length }
        writeFileSync(join(dir, `${path}.br`), brotliCompressSync(content, { params: hint }))
        writeFileSync(join(dir, `${path}.gz`), gzipSync(content, { level: 9 }))
      }
    },
  }
}
