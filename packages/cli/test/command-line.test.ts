import { execFileSync } from 'node:child_process'
import { BatonClient } from '@baton/client'
import { describe, expect, test } from 'vitest'
import { descriptor } from '../../client/test/support/descriptors.ts'
import { startService } from '../../client/test/support/service.ts'
import { commands } from '../src/commands.ts'
import { version } from '../src/dispatch.ts'
import { baton } from './support/baton.ts'
import { Scratch } from './support/scratch.ts'

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
    expect(help.stdout).toContain('# Go on when it is done')
    const service = await baton(['serve', '--help'])
    expect(service.stdout).toContain('--lease-seconds')
  })

  test.each([
    [['tsks'], 'tsks is not a command; did you mean tasks?'],
    [['--url', 'http://a', 'tasks'], '--url stands before the command; flags follow it: baton COMMAND --url'],
    [['tasks', '--wach'], '--wach is not a flag here; did you mean --watch?'],
    [['tasks', 'a', 'b'], '"b" is too much for tasks'],
    [['pause'], 'pause needs TASK'],
    [['pull', '--batch', '0'], '--batch is a whole number from 1 to 1000, not "0"'],
    [['pull', '--batch'], '--batch needs a value'],
    [
      ['tasks', '--watch', '--interval', '9999999'],
      '--interval is a number from 0.1 to 86400, not "9999999"',
    ],
    [['work', '--kill-after', '9999999', '--', 'true'], '--kill-after is a number from 0 to 86400'],
    [['pull', '--batch', '1', '--batch', '2'], '--batch was given twice'],
    [['tasks', '--url', 'http://a', '--url=http://a'], '--url was given twice'],
    [['tasks', '--watch=yes'], '--watch takes no value'],
    [['tasks', '--state', 'happy'], '--state is one of open, paused, done, stalled, cancelled, not "happy"'],
    [['work', '--concurrency', '4'], 'work needs a command'],
    [['work', './load.sh'], 'put -- before the command, which begins with "./load.sh"'],
    [['work', '--until-idle', 'sh', '-c', 'exit 0'], 'put -- before the command, which begins with "sh"'],
    [['work', 'python', '--wach', 'load.py'], 'put -- before the command, which begins with "python"'],
    [['work', 'sh', '--', 'x'], 'put -- before the command, which begins with "sh"'],
    [['work', '--untl-idle', 'sh'], '--untl-idle is not a flag here; did you mean --until-idle?'],
    [['settle', 'a', '--outcome', 'done', '--final'], '--final goes with --outcome failed, not with done'],
    [['settle', 'a', '--final'], '--final goes with --outcome failed, not with done'],
    [
      ['settle', 'a', '--outcome', 'released', '--final'],
      '--final goes with --outcome failed, not with released',
    ],
    [
      ['settle', 'a', '--retry-after', '5'],
      '--retry-after goes with --outcome failed or released, not with done',
    ],
    [
      ['settle', 'a', '--outcome', 'failed', '--processed', '5'],
      '--processed goes with --outcome done, not with failed',
    ],
    [['settle', 'a', '-'], '- stands for settlements on stdin, and cannot stand beside leases'],
    [
      ['settle', '-', '--outcome', 'failed', '--reason', 'x'],
      'settlements on stdin say themselves how they ended: without --outcome, --reason',
    ],
    [['tasks', 'a', '--state', 'open'], '--state chooses from a list, and cannot stand beside a task'],
    [
      ['tasks', 'a', '--search', 'b', '--limit', '3'],
      '--search, --limit choose from a list, and cannot stand beside a task',
    ],
    [['pull', '--url', 'foo'], '--url must be a URL that begins with http:// or https://, got "foo"'],
    [
      ['pull', '--url', 'localhost:7070'],
      '--url must be a URL that begins with http:// or https://, got "lo',
    ],
    [['manifest', 'a', '--url', 'http://127.0.0.1:6000'], 'has a port that fetch never asks'],
    [['pull', '--token', 'a\nb'], 'the header authorization has a name or a value that HTTP cannot carry'],
    [['pull', '--instance-id', 'a\nb'], '--instance-id must not be empty or contain control characters'],
    [['completion', 'tcsh'], 'completion is for bash, zsh or fish'],
    [['serve', '--prot', '1'], '--prot is not a flag; did you mean --port?'],
  ])('%j is refused', async (args, complaint) => {
    const { code, stderr, stdout } = await baton(args)
    expect(stderr).toContain(complaint)
    expect(stdout).toBe('')
    expect(code).toBe(2)
  })

  test.each([
    ['BATON_UNKNOWN_FIELDS', 'ignroe', 'BATON_UNKNOWN_FIELDS is one of refuse, ignore, keep, not "ignroe"'],
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
    expect(complete('re')).toEqual(['release', 'resume', 'retry', 'renew'])
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
