import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

const sourceCondition = 'baton-source'

export default defineConfig({
  // Workspace packages are inlined through Vite's SSR resolver, which has its own list of conditions. Node gets
  // them too, so `import` must not be among them: a require() would be given modules it cannot use.
  ssr: { resolve: { conditions: [sourceCondition, 'module', 'node'] } },
  test: {
    include: ['packages/*/test/**/*.test.ts', 'packages/*/src/**/*.test.ts', 'test/**/*.test.ts'],
    globalSetup: ['packages/dashboard/test/build-when-stale.ts'],
    pool: 'forks',
    // Vitest leaves a processor idle; most tests wait for a child process, a disk or a browser.
    maxWorkers: '100%',
    // Worker threads and child processes that a test starts inherit this, and so find our sources too.
    execArgv: [`--conditions=${sourceCondition}`],
    // Tests start services, hundreds of times: reading the sources once halves their time.
    env: { NODE_COMPILE_CACHE: fileURLToPath(new URL('./node_modules/.cache/node', import.meta.url)) },
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
})
