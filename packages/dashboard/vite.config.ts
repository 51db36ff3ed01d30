import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vite'
import { compressedBeside } from './compressed-beside.ts'

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url))

export default defineConfig({
  root: here('.'),
  // Relative: the same files work under whatever base path the service is mounted.
  base: './',
  resolve: { conditions: ['baton-source', 'module', 'browser', 'import', 'default'] },
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  plugins: [compressedBeside()],
  build: {
    target: 'es2023',
    rolldownOptions: { input: [here('index.html'), here('docs.html')] },
    modulePreload: { polyfill: false },
    // Nothing as data: URLs, which the page's security policy forbids.
    assetsInlineLimit: 0,
    reportCompressedSize: false,
  },
  server: {
    // `npm run dev -w @baton/dashboard` beside a service on its usual port.
    proxy: { '^/(tasks|instances|events|livez|openapi.json|test|call-back)': 'http://127.0.0.1:7070' },
  },
})
