// Installs the unit of deploy/systemd with the commands of docs/install.md under a real systemd, which boots in a
// container: npm run check:systemd. The container shares the network of this machine, so port 7070 must be free.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { CleanUp, temporaryFolder } from '../bench/harness/clean-up.ts'
import { readDocument } from '../test/docs/support/markdown.ts'
import { commandsOf } from '../test/docs/support/shell.ts'
import { differencesInFirstHandOff } from '../test/readme/support/first-hand-off.ts'
import { root } from './packages.ts'
import {
  check,
  doneInFirstHandOff,
  eventually,
  installDebian,
  ready,
  requireRootAnd,
  run,
  runCheck,
  say,
} from './tools.ts'

requireRootAnd(['systemd-nspawn', 'debootstrap', 'nsenter'], 'systemd-container debootstrap')

const URL = 'http://127.0.0.1:7070'
const cleanUp = new CleanUp()
const machine = join(temporaryFolder('systemd', cleanUp), 'machine')

/** Boots the machine. Returns a function that runs a shell script in it. */
async function boot(): Promise<(script: string) => string> {
  const options = ['--boot', '--register=no', '--keep-unit', '--quiet']
  const child = spawn('systemd-nspawn', ['--directory', machine, ...options], { stdio: 'ignore' })
  const ended = once(child, 'exit')
  const first = () => childrenOf(child.pid ?? 0)[0]
  await eventually('the machine boots', () => first() !== undefined)
  const enter = ['--target', String(first()), '--mount', '--uts', '--ipc', '--net', '--pid', '--cgroup']
  const inside = (script: string) => run('nsenter', ...enter, 'sh', '-euc', `cd /root; ${script}`)
  cleanUp.add(async () => {
    // SIGRTMIN+4 asks systemd to power off.
    process.kill(Number(first()), 38)
    await ended
  })
  await eventually('systemd is running', () => stateOf(inside) === 'running')
  return inside
}

const stateOf = (inside: (script: string) => string) =>
  inside('systemctl is-system-running 2>/dev/null || true').trim()

function childrenOf(pid: number): string[] {
  const file = `/proc/${pid}/task/${pid}/children`
  return existsSync(file)
    ? readFileSync(file, 'utf8')
        .split(' ')
        .filter((id) => id !== '')
    : []
}

async function statusWith(token: string): Promise<number> {
  const headers = token === '' ? {} : { authorization: `Bearer ${token}` }
  return (await fetch(`${URL}/tasks`, { headers })).status
}

await runCheck(cleanUp, async () => {
  const isTaken = await fetch(`${URL}/livez`).then(
    () => true,
    () => false,
  )
  if (isTaken) throw new Error('another program listens on port 7070')
  run(process.execPath, '--conditions=baton-source', 'release/binary.ts', join(machine, '../dist'))
  installDebian(machine, ['systemd', 'systemd-sysv', 'dbus'])
  cpSync(join(machine, '../dist'), join(machine, 'root/dist'), { recursive: true })
  cpSync(join(root, 'deploy'), join(machine, 'root/deploy'), { recursive: true })
  const inside = await boot()
  say('systemd is running')

  const property = (name: string) => inside(`systemctl show --property ${name} --value baton`)
  const [installing = '', addingTokens = ''] = commandsOf(readDocument('docs/install.md'), 'systemd', {})
  const begun = performance.now()
  const printed = inside(installing)
  check('the commands of docs/install.md print ready', printed.endsWith('ready'), printed)
  const differences = await differencesInFirstHandOff(URL)
  check('the first hand-off of README.md answers as shown', differences.length === 0, differences)
  say(`from the first command to there: ${Math.round(performance.now() - begun)} ms`)
  check('it is enabled', inside('systemctl is-enabled baton') === 'enabled')
  check('it has its own user', property('User') === 'baton')
  check('the state is readable by that user only', inside('stat -c "%U %a" /var/lib/baton') === 'baton 700')
  const [, exposure = ''] =
    /level for baton\.service: ([\d.]+)/.exec(inside('systemd-analyze security --no-pager baton')) ?? []
  check(`systemd-analyze security: ${exposure}`, exposure !== '' && Number(exposure) <= 2.5)

  inside('systemctl kill --signal KILL baton')
  await eventually('systemd restarts it', () => property('NRestarts') === '1')
  await ready(URL)
  check('killed: restarted, and the settled partition is done', (await doneInFirstHandOff(URL)) === 1)
  inside('systemctl restart baton')
  await ready(URL)
  check('restarted: the settled partition is done', (await doneInFirstHandOff(URL)) === 1)
  const stopping = performance.now()
  inside('systemctl stop baton')
  const millis = Math.round(performance.now() - stopping)
  check(`stopped after ${millis} ms`, property('Result') === 'success' && property('ExecMainStatus') === '0')
  const journal = inside('journalctl --unit baton --output cat --no-pager')
  check('the journal has the log', journal.includes('accepting requests') && journal.includes('"stopped"'))
  inside('systemctl start baton')
  await ready(URL)
  const backup = 'runuser -u baton -- baton backup /var/lib/baton/copy.db --data /var/lib/baton'
  check('a backup is made', inside(`${backup} && baton verify /var/lib/baton/copy.db`).includes('OK'))

  const create = 'baton token create --name on-call --role viewer --file /etc/baton/tokens.json'
  inside(addingTokens)
  await ready(URL)
  check('with tokens, a request without one is refused', (await statusWith('')) === 401)
  const started = property('ExecMainStartTimestamp')
  const added = inside(create).split('\n').at(-1) ?? ''
  await eventually('the new token is accepted', async () => (await statusWith(added)) === 200)
  check('a new token is accepted without a restart', property('ExecMainStartTimestamp') === started)

  const settings =
    '[Service]\\nLoadCredential=tokens.json:/etc/baton/tokens.json\\nEnvironment=BATON_TOKENS_FILE=%%d/tokens.json\\n'
  inside('sed -i /^BATON_TOKENS_FILE/d /etc/baton/baton.env && chown root:root /etc/baton/tokens.json')
  inside('chmod 600 /etc/baton/tokens.json && mkdir -p /etc/systemd/system/baton.service.d')
  inside(`printf '${settings}' > /etc/systemd/system/baton.service.d/tokens.conf`)
  inside('systemctl daemon-reload && systemctl restart baton')
  await ready(URL)
  check('tokens that only root can read work as a credential', (await statusWith(added)) === 200)
  check('and are still required', (await statusWith('')) === 401)
})
