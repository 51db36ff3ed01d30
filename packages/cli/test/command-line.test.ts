import { execFileSync } from 'node:child_process'
import { BatonClient } from '@baton/client'
import { version } from '@baton/server/version'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { descriptor } from '../../client/test/support/descriptors.ts'
import { startService } from '../../client/test/support/service.ts'
import { commands } from '../src/commands.ts'
import { dispatch } from '../src/dispatch.ts'
import { type BatonEnd, baton } from './support/baton.ts'
import { Scratch } from './support/scratch.ts'

/** In the process of the test: what is refused before anything else happens leaves nothing behind. */
async function dispatched(args: readonly string[]): Promise<BatonEnd> {
  const streams = { stdout: process.stdout, stderr: process.stderr }
  const written = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) {
    const listeners = streams[name].listeners('error')
    const write = vi.spyOn(streams[name], 'write').mockImplementation((text) => {
      written[name] += text
      return true
    })
    onTestFinished(() => {
      write.mockRestore()
      for (const listener of streams[name].listeners('error'))
        if (!listeners.includes(listener)) streams[name].off('error', listener as () => void)
    })
  }
  await dispatch(args)
  const code = Number(process.exitCode)
  process.exitCode = undefined
  return { code, ...written }
}

describe('the command line', () => {
  test('lists the commands', async () => {
    const { code, stdout } = await baton(['--help'])
    expect(code).toBe(0)
    for (const { name, summary } of commands)
      expect(stdout).toMatch(new RegExp(`^  ${name} +${summary}`, 'm'))
    expect(await baton([])).toMatchObject({ code: 2, stdout: '' })
    expect(await baton(['--version'])).toMatchObject({ code: 0, stdout: `${version}\n` })
  })

  test('every command has help with valid examples', async () => {
    for (const { name, load } of commands) {
      const command = await load()
      // The service has its own help, which is tested below.
      if (command.hasOwnLine === true) {
        expect(name).toBe('serve')
        continue
      }
      expect(command.examples.length, name).toBeGreaterThan(0)
      for (const { line } of command.examples) expect(line).toContain(`baton ${name}`)
    }
    const help = await baton(['help', 'tasks'])
    expect(help).toMatchObject({ code: 0 })
    expect(help.stdout).toContain('--watch')
    expect(help.stdout).toContain('# Continue when the task is done')
    const service = await baton(['serve', '--help'])
    expect(service.stdout).toContain('--lease-seconds')
  })

  test.each([
    [['tsks'], 'tsks is not a command; did you mean tasks?'],
    [['--url', 'http://a', 'tasks'], '--url must come after the command: baton COMMAND --url'],
    [['tasks', 'a', 'b'], '"b" is an unexpected operand of tasks'],
    [['pause'], 'pause requires TASK'],
    [['pull', '--batch', '0'], '--batch must be an integer from 1 to 1000, got "0"'],
    [['pull', '--batch'], '--batch requires a value'],
    [
      ['tasks', '--watch', '--interval', '9999999'],
      '--interval must be a number from 0.1 to 86400, got "9999999"',
    ],
    [['work', '--kill-after', '9999999', '--', 'true'], '--kill-after must be a number from 0 to 86400'],
    [['pull', '--batch', '1', '--batch', '2'], '--batch must not be repeated'],
    [['tasks', '--url', 'http://a', '--url=http://a'], '--url must not be repeated'],
    [['tasks', '--watch=yes'], '--watch does not accept a value'],
    [
      ['tasks', '--state', 'happy'],
      '--state must be one of open, paused, done, stalled, cancelled, got "happy"',
    ],
    [['work', '--concurrency', '4'], 'work requires a command'],
    [['work', './load.sh'], 'put -- before the command "./load.sh"'],
    [['work', '--until-idle', 'sh', '-c', 'exit 0'], 'put -- before the command "sh"'],
    [['work', 'python', '--wach', 'load.py'], 'put -- before the command "python"'],
    [['work', 'sh', '--', 'x'], 'put -- before the command "sh"'],
    [['work', '--untl-idle', 'sh'], '--untl-idle is not a flag of this command; did you mean --until-idle?'],
    [['settle', 'a', '--outcome', 'done', '--final'], '--final requires --outcome failed, got done'],
    [['settle', 'a', '--final'], '--final requires --outcome failed, got done'],
    [['settle', 'a', '--outcome', 'released', '--final'], '--final requires --outcome failed, got released'],
    [['settle', 'a', '--retry-after', '5'], '--retry-after requires --outcome failed or released, got done'],
    [
      ['settle', 'a', '--outcome', 'failed', '--processed', '5'],
      '--processed requires --outcome done, got failed',
    ],
    [['settle', 'a', '-'], '- reads settlements from stdin and cannot be combined with lease ids'],
    [
      ['settle', '-', '--outcome', 'failed', '--reason', 'x'],
      'settlements on stdin contain their outcome; remove --outcome, --reason',
    ],
    [['tasks', 'a', '--state', 'open'], '--state chooses from a list and cannot be combined with a task id'],
    [
      ['tasks', 'a', '--search', 'b', '--limit', '3'],
      '--search, --limit choose from a list and cannot be combined with a task id',
    ],
    [['pull', '--url', 'foo'], '--url must be a URL that begins with http:// or https://, got "foo"'],
    [
      ['pull', '--url', 'localhost:7070'],
      '--url must be a URL that begins with http:// or https://, got "lo',
    ],
    [['manifest', 'a', '--url', 'http://127.0.0.1:6000'], 'has a port that fetch blocks'],
    [['pull', '--token', 'a\nb'], 'the header authorization has a name or a value that HTTP cannot carry'],
    [['pull', '--instance-id', 'a\nb'], '--instance-id must not be empty or contain control characters'],
    [['completion', 'tcsh'], 'completion supports bash, zsh and fish'],
  ])('%j is refused', async (args, complaint) => {
    const { code, stderr, stdout } = await dispatched(args)
    expect(stderr).toContain(complaint)
    expect(stdout).toBe('')
    expect(code).toBe(2)
  })

  test.each([
    [['tasks', '--wach'], '--wach is not a flag of this command; did you mean --watch?'],
    [['serve', '--prot', '1'], '--prot is not a flag; did you mean --port?'],
  ])('%j ends the process with 2', async (args, complaint) => {
    const { code, stderr, stdout } = await baton(args)
    expect(stderr).toContain(complaint)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  })

  test.each([
    [
      'BATON_UNKNOWN_FIELDS',
      'ignroe',
      'BATON_UNKNOWN_FIELDS must be one of refuse, ignore, keep, got "ignroe"',
    ],
    ['BATON_INSTANCE_ID', 'a\nb', 'BATON_INSTANCE_ID must not be empty or contain control characters'],
    ['BATON_URL', 'localhost', 'BATON_URL must be a URL that begins with http://'],
  ])('%s is checked like its flag, and named', async (variable, value, complaint) => {
    const args = ['call-back', '--check', '-']
    const { code, stderr } = await baton(args, { env: { [variable]: value } })
    expect(stderr).toMatch(new RegExp(`^baton: ${complaint}`))
    expect(code).toBe(2)
  })

  test('a flag overrides its variable, and an empty variable is not set', async () => {
    const input = JSON.stringify([descriptor('orders', 0, 0)])
    const check = (rule: string, ...flags: string[]) =>
      baton(['call-back', '--check', '-', ...flags], { input, env: { BATON_UNKNOWN_FIELDS: rule } })
    expect(await check('ignroe', '--unknown-fields', 'ignore')).toMatchObject({ code: 0 })
    expect(await check('')).toMatchObject({ code: 0 })
  })
})

describe('completion', () => {
  test('bash completes commands and flags', async () => {
    const { stdout } = await baton(['completion', 'bash'])
    const script = new Scratch().file('completion.bash', stdout)
    const complete = (...words: string[]) =>
      execFileSync('bash', [
        '-c',
        `source ${script}; COMP_WORDS=(baton ${words.join(' ')}); COMP_CWORD=${words.length}; _baton; echo "\${COMPREPLY[@]}"`,
      ])
        .toString()
        .trim()
        .split(' ')
    expect(complete('pu')).toEqual(['pull'])
    expect(complete('re')).toEqual(['ready', 'release', 'resume-instance', 'resume', 'retry', 'renew'])
    expect(complete('tasks', '--wa')).toEqual(['--watch'])
    expect(complete('serve', '--lease-s')).toEqual(['--lease-seconds'])
    expect(complete('tasks', '--state', 's')).toEqual(['stalled'])
    expect(complete('partitions', 'orders', '--state', 'pa')).toEqual(['parked'])
  })

  test('tasks, tables and instances are completed, without output if the service is unavailable', async () => {
    const { url } = await startService()
    await new BatonClient({ url, instanceId: 'compute-1' }).callBack([
      descriptor('orders-a', 0, 0),
      descriptor('orders-a', 0, 1),
    ])
    const listed = async (...args: string[]) => (await baton(['complete', ...args], { url })).stdout
    expect(await listed('tasks', 'ord')).toBe('orders-a\n')
    expect(await listed('tasks', 'clicks')).toBe('')
    expect(await listed('tables')).toBe('results.orders\n')
    expect(await listed('instances', 'comp')).toBe('compute-1\n')
    const away = await baton(['complete', 'tasks'], { url: 'http://127.0.0.1:2' })
    expect(away).toEqual({ code: 0, stdout: '', stderr: '' })
    const { stdout } = await baton(['completion', 'bash'])
    expect(stdout).toContain('partitions) words="$(baton complete tasks "$word" 2>/dev/null)"')
  })

  test.each(['zsh', 'fish'])('%s gets every command', async (shell) => {
    const { stdout } = await baton(['completion', shell])
    for (const { name } of commands) expect(stdout).toContain(name)
  })
})
