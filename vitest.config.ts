import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

const areaReporter = fileURLToPath(new URL('./test/support/area-reporter.ts', import.meta.url))

const sourceCondition = 'baton-source'

// Tests start services, which take their settings from variables: those of whoever runs the tests are not meant.
for (const name of Object.keys(process.env)) if (name.startsWith('BATON_')) delete process.env[name]

/** Runs the tests of other files on another store: it must not meet those files as they were loaded before. */
const APART = 'packages/server/test/store/postgres-http.test.ts'

/**
 * Tests that start servers, browsers or processes, and those that try thousands of things by chance. Some of the longest are
 * files of two lines: a suite on another store.
 */
const LONG =
  /\/test\/(?:store\/(?:postgres|sqlite\.)|handoff\/model|http\/(?:fuzz|hostile)|browser|chaos|crash|postgres|siege)|\/packages\/cli\//

/** Those of more than a minute. */
const LONGEST = /\/test\/(?:store\/postgres(?:-http)?\.|chaos|crash|packages\.|browser\/looks)/

/** Otherwise, where no run was timed yet, those would come last, and one of them alone at the end. */
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
          name: 'shared',
          include: ['packages/*/test/**/*.test.ts', 'packages/*/src/**/*.test.ts', 'test/**/*.test.ts'],
          exclude: [APART],
        },
      },
      { extends: true, test: { name: 'apart', include: [APART], isolate: true } },
    ],
    globalSetup: ['packages/dashboard/test/build-when-stale.ts', 'packages/server/test/compile-once.ts'],
    pool: 'forks',
    // Loading the sources anew for each file was four tenths of the processor time of those that start no process. So files
    // share what they load: whoever replaces something (timers, a method, a variable) puts it back.
    isolate: false,
    // Most tests wait for a child process, a disk or a browser: with a worker per processor a quarter of their time is idle.
    maxWorkers: 2 * availableParallelism(),
    sequence: { sequencer: LongOnesFirst },
    // Worker threads and child processes that a test starts inherit this, and so find our sources too.
    execArgv: [`--conditions=${sourceCondition}`],
    // Tests start services, hundreds of times: reading the sources once halves their time.
    env: { NODE_COMPILE_CACHE: fileURLToPath(new URL('./node_modules/.cache/node', import.meta.url)) },
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
})
