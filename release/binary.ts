import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from 'node:fs'
import { join, resolve } from 'node:path'
import { build, type Rolldown } from 'vite'
import { root } from './packages.ts'

/**
 * Builds the command, the service and the page as one executable file that needs no Node on the machine:
 * `node release/binary.ts [FOLDER]`, by default into dist/. It is a copy of the Node that runs this, with a bundle
 * of all code and the files of the page in it.
 */
const target = resolve(process.argv[2] ?? `${root}dist`)
const work = join(root, 'node_modules/.cache/binary')
const page = join(root, 'packages/dashboard/dist')

mkdirSync(work, { recursive: true })
mkdirSync(target, { recursive: true })
if (!existsSync(join(page, 'index.html')))
  execFileSync('npm', ['run', 'build:page'], { cwd: root, stdio: 'inherit' })

writeFileSync(join(work, 'baton.cjs'), await bundle())
const pageFiles = readdirSync(page, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => join(entry.parentPath, entry.name))
writeFileSync(
  join(work, 'sea.json'),
  JSON.stringify({
    main: join(work, 'baton.cjs'),
    output: join(work, 'baton.blob'),
    disableExperimentalSEAWarning: true,
    // Compiling the code is most of the start-up time of a command.
    useCodeCache: true,
    assets: Object.fromEntries(pageFiles.map((file) => [`page${file.slice(page.length)}`, file])),
  }),
)
execFileSync(process.execPath, ['--experimental-sea-config', join(work, 'sea.json')], { stdio: 'pipe' })

const file = join(target, process.platform === 'win32' ? 'baton.exe' : 'baton')
// A new file: the previous one may be running.
copyFileSync(process.execPath, `${file}.new`)
chmodSync(`${file}.new`, 0o755)
// It warns about sections that it does not change.
execFileSync(
  process.execPath,
  [
    join(root, 'node_modules/postject/dist/cli.js'),
    `${file}.new`,
    'NODE_SEA_BLOB',
    join(work, 'baton.blob'),
    '--sentinel-fuse',
    'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2',
  ],
  { stdio: 'pipe' },
)
renameSync(`${file}.new`, file)
process.stdout.write(`${file}\n`)

async function bundle(): Promise<string> {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
  const built = await build({
    configFile: false,
    logLevel: 'warn',
    ssr: { noExternal: true, resolve: { conditions: ['baton-source', 'module', 'node'] } },
    build: {
      ssr: true,
      write: false,
      target: 'node24',
      rolldownOptions: {
        input: join(root, 'release/binary-main.ts'),
        output: { format: 'cjs', codeSplitting: false },
      },
    },
    plugins: [
      {
        // There is no package.json to read it from.
        name: 'version',
        load: (id) =>
          id === join(root, 'packages/server/src/version.ts')
            ? `export const version = ${JSON.stringify(version)}`
            : undefined,
      },
    ],
  })
  const { output } = built as Rolldown.RolldownOutput
  if (output.length !== 1) throw new Error(`the bundle has ${output.length} files instead of one`)
  return output[0].code
}
