import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

// Builds the page after an installation, so that a fresh checkout serves it. Plain JavaScript: it also runs where
// only the production dependencies were installed, and there it keeps the page that was built before.
let vite
try {
  vite = await import('vite')
} catch (error) {
  if (error?.code !== 'ERR_MODULE_NOT_FOUND') throw error
  if (!existsSync(new URL('dist/index.html', import.meta.url)))
    console.log(
      'the page is not built, which needs development dependencies: run npm ci once, then npm ci --omit=dev',
    )
}
await vite?.build({ configFile: fileURLToPath(new URL('vite.config.ts', import.meta.url)), logLevel: 'warn' })
