import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

const areaReporter = fileURLToPath(new URL('./test/support/area-reporter.ts', import.meta.url))

const sourceCondition = 'baton-source'

// Tests start services, which read their settings from the environment: variables of the caller must not
// reach them.
for (const name of Object.keys(process.env)) if (name.startsWith('BATON_')) delete process.env[name]

/** Tests that run before a release, not for each change: `npm run test:long`. */
const BEFORE_A_RELEASE = '**/*.long.test.ts'

/**
 * Tests that start servers, browsers or processes, and randomized tests with thousands of cases. Some of the
 * longest are files of two lines that run a suite on another store.
 */
const LONG =
  /\/test\/(?:store\/(?:postgres|sqlite\.)|http\/(?:fast-path|fuzz|hostile|large|tls|token-reload)|archive\/move|main\.|worker-|browser|chaos|clients|cluster|docs\/tutorial|examples|postgres|siege|simulate|webhooks)|\/packages\/cli\//

/** Tests that take more than twenty seconds, most of them waiting. */
const LONGEST =
  /\/test\/(?:store\/postgres(?:-http)?\.|chaos|clients|packages\.|browser\/(?:looks|overview|tokens))/

/** Without recorded timings, the long tests would run last, and one of them alone at the end. */
class LongOnesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) =>
      LONGEST.test(moduleId) ? 0 : LONG.test(moduleId) ? 1 : 2
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b))
  }
}

export default defineConfig({
  // Workspace packages are inlined through Vite's SSR resolver, which has its own list of conditions. Node gets
  // them too, so `import` must not be among them: a require() would be given modules it cannot use.
  ssr: { resolve: { conditions: [sourceCondition, 'node'] } },
  test: {
    reporters: ['default', areaReporter],
    projects: [
      {
        extends: true,
        test: {
          name: 'short',
          include: ['packages/*/test/**/*.test.ts', 'packages/*/src/**/*.test.ts', 'test/**/*.test.ts'],
          exclude: [BEFORE_A_RELEASE, '**/node_modules/**'],
        },
      },
      {
        extends: true,
        // One of them runs the tests of other files on another store, so it must load them again.
        test: {
          name: 'long',
          include: [BEFORE_A_RELEASE],
          exclude: ['**/node_modules/**'],
          isolate: true,
        },
      },
    ],
    globalSetup: ['packages/dashboard/test/build-when-stale.ts', 'packages/server/test/compile-once.ts'],
    pool: 'forks',
    // Loading the sources again for each file would take much of the processor time, so files share loaded
    // modules: a test that replaces something (timers, a method, a variable) restores it.
    isolate: false,
    // Most tests wait for a child process, a disk or a browser: one worker per processor would often be idle.
    maxWorkers: 2 * availableParallelism(),
    sequence: { sequencer: LongOnesFirst },
    // Worker threads and child processes of a test inherit this, so they find our sources too.
    execArgv: [`--conditions=${sourceCondition}`],
    // Tests start services hundreds of times: a compile cache saves most of the loading time.
    env: { NODE_COMPILE_CACHE: fileURLToPath(new URL('./node_modules/.cache/node', import.meta.url)) },
    // Only a test that hangs may reach these: a busy machine must not decide.
    testTimeout: 300_000,
    hookTimeout: 300_000,
  },
})
