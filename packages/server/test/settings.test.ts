import { describe, expect, test } from 'vitest'
import { helpText, readCommandLine } from '../src/command-line.ts'
import { flagOf, settingNames, variableOf } from '../src/config.ts'
import { changedSettings, readSettings } from '../src/settings.ts'
import { SettingsError } from '../src/settings-files.ts'

const configFor = (args: string[], environment: Record<string, string> = {}) =>
  readSettings(readCommandLine(args).given, environment).config

function faultsOf(
  args: string[],
  environment: Record<string, string> = {},
): Pick<SettingsError, 'lines' | 'exitCode'> {
  try {
    configFor(args, environment)
  } catch (error) {
    if (error instanceof SettingsError) return { lines: error.lines, exitCode: error.exitCode }
    throw error
  }
  throw new Error('nothing was found wrong')
}

describe('settings', () => {
  test('that were changed are logged, without the database URL', () => {
    const given = ['--lease-seconds', '60', '--allowed-hosts', 'a.example', '--max-attempts', '5']
    const database = { BATON_DATABASE_URL: 'postgres://baton:secret@db/baton' }
    expect(changedSettings(configFor([...given, '--instance-id', 'n1'], database))).toEqual({
      allowedHosts: ['a.example'],
      leaseSeconds: 60,
      instanceId: 'n1',
    })
    expect(Object.keys(changedSettings(configFor([])))).toEqual(['instanceId'])
  })

  test('have the documented defaults', () => {
    const { instanceId, ...defaults } = configFor([])
    expect(instanceId).toMatch(/-[0-9a-f]{8}$/)
    expect(defaults).toEqual({
      host: '127.0.0.1',
      port: 7070,
      basePath: '/',
      allowedHosts: [],
      allowAnonymous: false,
      tokensFile: null,
      subscriptionsFile: null,
      tlsCert: null,
      tlsKey: null,
      trustProxy: [],
      data: './data',
      databaseUrl: null,
      peerUrl: null,
      advertiseUrl: null,
      logUrl: null,
      peerCa: null,
      delivery: 'at-least-once',
      leaseSeconds: 300,
      leasePerThousandRecords: 0,
      maxAttempts: 5,
      backoffSeconds: 10,
      backoffMaxSeconds: 600,
      levelBarrier: false,
      tableField: 'computeTableName',
      unknownFields: 'refuse',
      bodyLimitMb: 16,
      maxConnections: 20_000,
      maxConnectionsPerAddress: 10_000,
      maxRequestsPerConnection: 100,
      maxWaitingPulls: 20_000,
      maxWaitingPullsPerCaller: 10_000,
      maxReceivedMb: 256,
      maxCallBackPartitions: 100_000,
      maxCallBackLevels: 10_000,
      maxLanes: 200_000,
      maxLeases: 250_000,
      requestSeconds: 300,
      answerSeconds: 60,
      maxUnsentMb: 256,
      overloadSeconds: 1,
      maxRequestsPerSecond: 0,
      retentionDays: 7,
      auditDays: 90,
      authProxy: [],
      scaleTargetSeconds: 600,
      webhookNetworks: [],
      webhookBackoffSeconds: 5,
      webhookSource: '/baton',
      fastPath: true,
      logLevel: 'info',
    })
  })

  test('come from the environment', () => {
    const environment = {
      BATON_PORT: '8080',
      BATON_LEASE_SECONDS: '0.25',
      BATON_LEASE_PER_THOUSAND_RECORDS: '1.5',
      BATON_LEVEL_BARRIER: 'TRUE',
      BATON_ALLOWED_HOSTS: 'baton.internal, edge.example:8443,',
      BATON_UNKNOWN_FIELDS: 'ignore',
    }
    expect(configFor([], environment)).toMatchObject({
      port: 8080,
      leaseSeconds: 0.25,
      leasePerThousandRecords: 1.5,
      levelBarrier: true,
      allowedHosts: ['baton.internal', 'edge.example:8443'],
      unknownFields: 'ignore',
    })
  })

  test('on the command line override the environment', () => {
    expect(configFor(['--port', '0'], { BATON_PORT: '8080' }).port).toBe(0)
    expect(configFor(['--no-level-barrier'], { BATON_LEVEL_BARRIER: 'true' }).levelBarrier).toBe(false)
  })

  test('that are empty in the environment are not set', () => {
    expect(configFor([], { BATON_PORT: '', BATON_TOKENS_FILE: '' })).toMatchObject({
      port: 7070,
      tokensFile: null,
    })
  })

  test.each([
    [['--data', '/srv/baton'], { data: '/srv/baton' }],
    [['--data=/srv/a=b'], { data: '/srv/a=b' }],
    [['--data', '-odd'], { data: '-odd' }],
    [['--level-barrier'], { levelBarrier: true }],
    [['--level-barrier=false'], { levelBarrier: false }],
    [['--level-barrier', 'false', '--port', '1'], { levelBarrier: false, port: 1 }],
    [['--level-barrier', '--port', '1'], { levelBarrier: true, port: 1 }],
    [['--port', '1', '--port', '2'], { port: 2 }],
    [['--host', '::1'], { host: '::1' }],
    [['--allowed-hosts', '10.0.0.7,[fd00::7]:80'], { allowedHosts: ['10.0.0.7', '[fd00::7]:80'] }],
    [['--host', '0.0.0.0', '--allow-anonymous'], { host: '0.0.0.0' }],
    [['--peer-url', 'https://[fd00::7]:7070/baton'], { peerUrl: 'https://[fd00::7]:7070/baton' }],
    [['--database-url', 'postgres://db/baton', '--host', '127.0.0.1'], { peerUrl: null }],
    [['--host', '0.0.0.0', '--tokens-file', 't.json'], { host: '0.0.0.0' }],
    [['--trust-proxy', '10.0.0.5, fd00::/8'], { trustProxy: ['10.0.0.5', 'fd00::/8'] }],
    [['--tls-cert', 'a.crt', '--tls-key', 'a.key'], { tlsCert: 'a.crt', tlsKey: 'a.key' }],
  ])('are read from %j', (args, expected) => {
    expect(configFor(args)).toMatchObject(expected)
  })
})

describe('a command line that cannot be parsed', () => {
  test.each([
    [['--prot', '1'], '--prot is not a flag; did you mean --port? --help lists all flags'],
    [
      ['--leaseSeconds', '1'],
      '--leaseSeconds is not a flag; did you mean --lease-seconds? --help lists all flags',
    ],
    [['--nonsense'], '--nonsense is not a flag; --help lists all flags'],
    [['--no-port'], '--no-port is not a flag; did you mean --port? --help lists all flags'],
    [['serve'], 'serve is not a flag; --help lists all flags'],
    [['-p', '1'], '-p is not a flag; --help lists all flags'],
    [['--port'], '--port requires a value; --help lists all flags'],
    [['--data', '--port', '1'], '--data requires a value; --help lists all flags'],
  ])('%j is a usage error', (args, line) => {
    expect(faultsOf(args)).toEqual({ lines: [line], exitCode: 2 })
  })
})

test('all errors of a command line are reported at once', () => {
  expect(faultsOf(['--prot', '1', '--nonsense', 'serve', 'twice', '--data', '--level-bariers'])).toEqual({
    lines: [
      '--prot is not a flag; did you mean --port?',
      '--nonsense is not a flag',
      'twice is not a flag',
      '--data requires a value',
      '--level-bariers is not a flag; did you mean --level-barrier? --help lists all flags',
    ],
    exitCode: 2,
  })
})

describe('an invalid value', () => {
  test.each([
    [['--port', '70000'], '--port must be an integer from 0 to 65535, got "70000"'],
    [['--port', '1.5'], '--port must be an integer from 0 to 65535, got "1.5"'],
    [['--port='], '--port must be an integer from 0 to 65535, got ""'],
    [['--lease-seconds', '0'], '--lease-seconds must be a number from 0.001 to 43200, got "0"'],
    [['--lease-seconds', '1e3'], '--lease-seconds must be a number from 0.001 to 43200, got "1e3"'],
    [['--level-barrier=maybe'], '--level-barrier must be true or false, got "maybe"'],
    [['--delivery', 'twice'], '--delivery must be one of at-least-once, at-most-once, got "twice"'],
    [['--data='], '--data must be a non-empty text, got ""'],
    [['--base-path', 'baton'], '--base-path must be a path that begins with a slash'],
    [['--table-field', 'my field'], '--table-field must be a field name'],
    [['--allowed-hosts', '*'], '--allowed-hosts must be host names or addresses'],
    [['--allowed-hosts', 'a.example,*.example'], '--allowed-hosts must be host names or addresses'],
    [['--allowed-hosts', 'http://a.example'], '--allowed-hosts must be host names or addresses'],
    [['--allowed-hosts', 'fd00::7'], '--allowed-hosts must be host names or addresses'],
    [['--instance-id', 'a\nb'], '--instance-id must be a name of 1 to 256 printable characters'],
  ])('%j is reported with the allowed values', (args, beginning) => {
    const { lines, exitCode } = faultsOf(args)
    expect(exitCode).toBe(1)
    expect(lines).toEqual([expect.stringContaining(beginning)])
  })

  test('is named by its variable where it came from the environment, all at once', () => {
    const { lines } = faultsOf([], { BATON_PORT: 'x', BATON_MAX_ATTEMPTS: '0' })
    expect(lines).toEqual([
      'BATON_PORT must be an integer from 0 to 65535, got "x"',
      'BATON_MAX_ATTEMPTS must be an integer from 1 to 1000000, got "0"',
    ])
  })
})

describe('settings that contradict each other', () => {
  test.each([
    [['--host', '0.0.0.0'], '--allow-anonymous'],
    [['--host', '::', '--allow-anonymous', '--database-url', 'postgres://db/baton'], '--peer-url'],
    [['--host', '192.168.1.5'], '--tokens-file'],
    [['--host', '::'], '--tokens-file'],
    [['--tls-cert', 'a.crt'], 'also set --tls-key'],
    [['--tls-key', 'a.key'], 'also set --tls-cert'],
    [
      ['--tls-cert', 'a.crt', '--tls-key', 'a.key', '--peer-url', 'http://10.0.0.7:7070'],
      '--peer-url must begin with https://',
    ],
    [['--trust-proxy', '10.0.0.0/8,10.0.0.0/33'], 'such as 10.0.0.5 or 10.0.0.0/8, not 10.0.0.0/33'],
    [['--delivery', 'at-most-once', '--level-barrier'], '--delivery at-most-once'],
    [['--backoff-seconds', '900'], '--backoff-max-seconds (600)'],
    [['--table-field', 'record_count'], '--table-field cannot be record_count'],
    [['--table-field', 'lease'], '--table-field cannot be lease'],
    [['--table-field', '__proto__'], '--table-field cannot be __proto__'],
    [['--table-field', 'state'], '--table-field cannot be state'],
  ])('%j are refused with a remedy', (args, said) => {
    const { lines, exitCode } = faultsOf(args)
    expect(exitCode).toBe(1)
    expect(lines).toEqual([expect.stringContaining(said)])
  })
})

test('contradictions are reported with invalid values, except for those that depend on them', () => {
  const args = ['--base-path', 'x', '--delivery', 'at-most-once', '--level-barrier', '--backoff-seconds', 'y']
  expect(faultsOf([...args, '--host', '0.0.0.0', '--table-field', 'lease']).lines).toEqual([
    expect.stringContaining('--base-path must be'),
    expect.stringContaining('--backoff-seconds must be'),
    expect.stringContaining('anyone who can reach 0.0.0.0'),
    expect.stringContaining('use one of --level-barrier and --delivery at-most-once'),
    expect.stringContaining('--table-field cannot be lease'),
  ])
})

describe('a misspelt variable', () => {
  test('is reported, while those of other programs are ignored', () => {
    const { warnings } = readSettings(new Map(), { BATON_LEASE_SECOND: '5', BATON_URL: 'http://localhost' })
    expect(warnings).toEqual([
      'BATON_LEASE_SECOND is not a setting and is ignored; did you mean BATON_LEASE_SECONDS?',
    ])
  })
})

describe('an open network whose hosts are not named', () => {
  test('causes a warning, since every request from there will be refused', () => {
    const given = readCommandLine(['--host', '0.0.0.0', '--allow-anonymous']).given
    expect(readSettings(given, {}).warnings).toEqual([expect.stringContaining('--allowed-hosts')])
    expect(readSettings(given, { BATON_ALLOWED_HOSTS: 'baton.internal' }).warnings).toEqual([])
  })
})

describe('--help', () => {
  test('lists every setting with flag, variable, default and meaning', () => {
    const text = helpText('1.2.3')
    expect(text).toContain('Baton 1.2.3')
    for (const name of settingNames) {
      expect(text).toContain(`${flagOf(name)}`)
      expect(text).toContain(`${variableOf(name)}`)
    }
    expect(text).toMatch(/--lease-seconds <number> +BATON_LEASE_SECONDS +300\n +length of a lease\n/)
  })

  test('has precedence over --version, and both over everything else', () => {
    expect(readCommandLine(['--version', '--help']).asksFor).toBe('help')
    expect(readCommandLine(['--port', '1', '--version']).asksFor).toBe('version')
  })
})
