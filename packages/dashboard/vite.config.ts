import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vite'
import { compressedAssets } from './compressed-assets.ts'

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url))

export default defineConfig({
  root: here('.'),
  // Relative, so that the same files work under any base path of the service.
  base: './',
  resolve: { conditions: ['baton-source', 'module', 'browser', 'import', 'default'] },
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  plugins: [compressedAssets()],
  build: {
    target: 'es2023',
    rolldownOptions: { input: [here('index.html'), here('docs.html')] },
    modulePreload: { polyfill: false },
    // Nothing as data: URLs, which the page's security policy forbids.
    assetsInlineLimit: 0,
    reportCompressedSize: false,
  },
  server: {
    // `npm run dev -w @baton/dashboard` uses a service on its default port.
    proxy: { '^/(tasks|instances|events|livez|openapi.json|test|call-back)': 'http://127.0.0.1:7070' },
  },
})
