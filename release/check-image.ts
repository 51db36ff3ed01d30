// Builds the image of the Dockerfile and runs it: npm run check:image [-- --base IMAGE]. It needs no Docker engine.
// Without --base, the base is made of Debian's packages and the Node of this checkout, so no registry of images is
// needed either.
import { cpSync, mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { CleanUp, freePort, temporaryFolder } from '../bench/harness/clean-up.ts'
import { startPostgres } from '../bench/harness/postgres.ts'
import { differencesInFirstHandOff } from '../test/readme/support/first-hand-off.ts'
import {
  check,
  doneInFirstHandOff,
  installDebian,
  ready,
  requireRootAnd,
  run,
  runCheck,
  say,
} from './tools.ts'

const { values: given } = parseArgs({ options: { base: { type: 'string' } } })
requireRootAnd(['buildah', 'podman', 'runc', 'debootstrap'], 'buildah podman runc debootstrap')

const cleanUp = new CleanUp()
const folder = temporaryFolder('image', cleanUp)
const storage = [
  '--root',
  join(folder, 'storage'),
  '--runroot',
  join(folder, 'run'),
  '--storage-driver',
  'vfs',
]
const podman = (...args: string[]) => run('podman', ...storage, '--runtime', 'runc', ...args)
/** What the container wrote to both of its outputs. */
const logs = (name: string) =>
  run('sh', '-c', 'exec podman "$@" 2>&1', 'podman', ...storage, '--runtime', 'runc', 'logs', name)
const inspected = (name: string, what: string) => podman('inspect', '--format', `{{.${what}}}`, name)

/** As in the official image of Node: node and npm in /usr/local. */
function debianWithNode(): string {
  const debian = join(folder, 'debian')
  installDebian(debian, ['ca-certificates'])
  cpSync(process.execPath, join(debian, 'usr/local/bin/node'))
  const modules = 'usr/local/lib/node_modules'
  mkdirSync(join(debian, modules), { recursive: true })
  cpSync(join(run('npm', 'root', '--global'), 'npm'), join(debian, modules, 'npm'), { recursive: true })
  symlinkSync('../lib/node_modules/npm/bin/npm-cli.js', join(debian, 'usr/local/bin/npm'))
  const changes = ['PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin']
  // The certificates with which this machine reaches the registry of packages.
  const certificates = process.env['NODE_EXTRA_CA_CERTS']
  if (certificates !== undefined) {
    cpSync(certificates, join(debian, 'etc/ssl/certs/check.crt'), { dereference: true })
    changes.push('NODE_EXTRA_CA_CERTS=/etc/ssl/certs/check.crt')
  }
  run('tar', '-C', debian, '-cf', join(folder, 'base.tar'), '.')
  podman('import', ...changes.flatMap((one) => ['--change', `ENV ${one}`]), join(folder, 'base.tar'), 'base')
  return 'localhost/base'
}

function build(): void {
  const base = given.base ?? debianWithNode()
  say(`building on ${base}`)
  const how = ['--isolation', 'chroot', '--format', 'docker', '--network', 'host']
  run('buildah', ...storage, 'bud', ...how, '--build-arg', `BASE=${base}`, '--tag', 'baton', '.')
  const megabytes = (image: string) => Number(inspected(image, 'Size')) / 1e6
  const [all, ours] = [megabytes('baton'), megabytes('baton') - megabytes(base)]
  say(`the image has ${all.toFixed(0)} MB, ${ours.toFixed(0)} MB of them on top of the base`)
}

/** Starts a container as compose.yaml does, but in the network of this machine. */
function start(name: string, port: number, environment: Record<string, string>, ...more: string[]): string {
  const url = `http://127.0.0.1:${port}`
  const settings = { BATON_PORT: String(port), BATON_URL: url, ...environment }
  podman(
    ...['run', '--detach', '--name', name, '--network', 'host'],
    ...['--ulimit', 'nofile=1024:1024', '--ulimit', 'nproc=1024:1024'],
    ...['--cap-drop', 'ALL', '--security-opt', 'no-new-privileges'],
    ...Object.entries(settings).flatMap(([key, value]) => ['--env', `${key}=${value}`]),
    ...more,
    'baton',
  )
  cleanUp.add(() => void podman('rm', '--force', '--volumes', name))
  return url
}

const anonymous = { BATON_ALLOW_ANONYMOUS: 'true', BATON_ALLOWED_HOSTS: 'baton' }
const onVolume = ['--volume', 'data:/var/lib/baton']

async function oneNode(): Promise<void> {
  const begun = performance.now()
  const url = start('one', await freePort(), anonymous, '--read-only', ...onVolume)
  await ready(url)
  say(`ready ${Math.round(performance.now() - begun)} ms after podman run; the root file system is read-only`)
  check('it does not run as root', podman('exec', 'one', 'id', '-u') === '10001')
  check('the health check of the image passes', podman('healthcheck', 'run', 'one') === '')
  check('the page is served', (await (await fetch(url)).text()).includes('assets/'))
  const differences = await differencesInFirstHandOff(url)
  check('the first hand-off of README.md answers as shown', differences.length === 0, differences)
  const warnings = logs('one')
    .split('\n')
    .filter((line) => /"level":[4-6]0/.test(line))
  check('the log has no warning', warnings.length === 0, warnings)

  const stopping = performance.now()
  podman('stop', '--time', '20', 'one')
  const millis = Math.round(performance.now() - stopping)
  check(`SIGTERM: exit code 0 after ${millis} ms`, inspected('one', 'State.ExitCode') === '0')
  podman('start', 'one')
  await ready(url)
  check('started again: the settled partition is done', (await doneInFirstHandOff(url)) === 1)
  podman('kill', '--signal', 'KILL', 'one')
  podman('wait', 'one')
  podman('start', 'one')
  await ready(url)
  check('killed and started again: the settled partition is done', (await doneInFirstHandOff(url)) === 1)
  podman('exec', 'one', 'baton', 'backup', '/var/lib/baton/copy.db')
  check('a backup can be verified', podman('exec', 'one', 'baton', 'verify', 'copy.db').startsWith('OK'))
  podman('rm', '--force', 'one')
}

/** On a root file system that it could write to. */
async function nothingElsewhere(): Promise<void> {
  const url = start('two', await freePort(), anonymous, ...onVolume)
  await ready(url)
  check('a new container finds the data in the volume', (await doneInFirstHandOff(url)) === 1)
  podman('stop', 'two')
  // The runtime creates mount points and the files of the network, and names the user.
  const ofRuntime =
    /^[AC] \/(?:var(?:\/lib(?:\/baton)?)?|etc(?:\/(?:hosts|hostname|resolv\.conf|mtab|passwd|group))?|run(?:\/.*)?|dev|proc|sys)$/
  const written = podman('diff', 'two')
    .split('\n')
    .filter((line) => line !== '' && !ofRuntime.test(line))
  check('nothing is written outside of the volume', written.length === 0, written)
}

async function refusesToBeOpen(): Promise<void> {
  start('three', await freePort(), {})
  podman('wait', 'three')
  const said = logs('three')
  check('without tokens it refuses to start', inspected('three', 'State.ExitCode') === '1', said)
}

async function threeNodes(): Promise<void> {
  const postgres = await startPostgres(cleanUp)
  const database = await postgres.createDatabase('baton')
  const names = ['baton-1', 'baton-2', 'baton-3']
  const urls: string[] = []
  for (const name of names) {
    const port = await freePort()
    const peer = `http://127.0.0.1:${port}`
    const shared = {
      ...anonymous,
      BATON_DATABASE_URL: database,
      BATON_PEER_URL: peer,
      BATON_INSTANCE_ID: name,
    }
    urls.push(start(name, port, shared, '--read-only'))
    await ready(peer)
  }
  const [, second = '', third = ''] = urls
  const differences = await differencesInFirstHandOff(second)
  check('three nodes on PostgreSQL: the first hand-off on the second', differences.length === 0, differences)
  podman('kill', '--signal', 'KILL', 'baton-1')
  await ready(third)
  check('the leader is killed: the third node answers', (await doneInFirstHandOff(third)) === 1)
  podman('stop', 'baton-2')
  check('the second node stops with exit code 0', inspected('baton-2', 'State.ExitCode') === '0')
}

await runCheck(cleanUp, async () => {
  build()
  await oneNode()
  await nothingElsewhere()
  await refusesToBeOpen()
  await threeNodes()
})
