import { execFile, execFileSync } from 'node:child_process'
import { promisify } from 'node:util'
import { BatonClient } from '@baton/client'
import { describe, expect, test } from 'vitest'
import { localServer } from '../../../test/support/local-server.ts'
import { programArguments } from '../../../test/support/programs.ts'
import { until } from '../../../test/support/until.ts'
import { descriptors } from '../../client/test/support/descriptors.ts'
import { rowsOf } from '../../client/test/support/partition-states.ts'
import { sharedService } from '../../client/test/support/service.ts'
import { baton, startBaton } from './support/baton.ts'
import { Scratch } from './support/scratch.ts'

const service = sharedService()
const lines = (values: readonly unknown[]) => values.map((value) => `${JSON.stringify(value)}\n`).join('')

describe('baton call-back', () => {
  test('accepts a JSON array or lines, from a file or from stdin', async () => {
    const { url } = service()
    const scratch = new Scratch()
    const array = scratch.file('array.json', JSON.stringify(descriptors('array', 3), null, 2))
    expect(await baton(['call-back', array], { url })).toMatchObject({
      code: 0,
      stdout: 'array: 3 partitions accepted\n',
    })
    const ndjson = scratch.file('lines.ndjson', lines(descriptors('lines', 3)))
    expect(await baton(['call-back', ndjson, '--json'], { url })).toMatchObject({
      code: 0,
      stdout: '{"taskId":"lines","accepted":3,"duplicates":0,"requests":1}\n',
    })
    const again = await baton(['call-back', '-'], { url, input: lines(descriptors('lines', 4)) })
    expect(again).toMatchObject({ code: 0, stdout: 'lines: 1 partition accepted, 3 already stored\n' })
  })

  test('checks everything before anything is sent, and names file and line', async () => {
    const { url } = service()
    const scratch = new Scratch()
    const broken = descriptors('broken', 20_000).map((each, at) =>
      at === 15_000 ? { ...each, record_count: '5' } : at === 15_001 ? { ...each, recordCount: 5 } : each,
    )
    const file = scratch.file('broken.ndjson', lines(broken))
    for (const run of [
      () => baton(['call-back', file, '--per-request', '100'], { url }),
      () => baton(['call-back', file, '--check']),
    ]) {
      const { code, stderr, stdout } = await run()
      expect(code).toBe(4)
      expect(stdout).toBe('')
      expect(stderr).toContain(
        `${file}:15001: record_count must be a non-negative integer, got the string "5"`,
      )
      expect(stderr).toContain(`${file}:15002: "recordCount" is not a field of the contract`)
    }
    const piped = await baton(['call-back', '-'], { url, input: lines(broken) })
    expect(piped).toMatchObject({ code: 4 })
    expect(piped.stderr).toContain('stdin:15001: record_count')
    await expect(new BatonClient(url).task('broken')).rejects.toMatchObject({ code: 'task_unknown' })
  })

  test('reports every error of a file, by element if a line has several', async () => {
    const scratch = new Scratch()
    const far = descriptors('far', 25_000).map((each, at) =>
      at % 12_000 === 5 ? { ...each, record_count: -at } : each,
    )
    const file = scratch.file('far.ndjson', `${lines(far)}{"taskId": nonsense}\n`)
    const { code, stderr } = await baton(['call-back', '--check', file])
    expect(code).toBe(4)
    expect(stderr.trimEnd().split('\n')).toEqual([
      expect.stringContaining(`${file}:6: record_count must be`),
      expect.stringContaining(`${file}:12006: record_count must be`),
      expect.stringContaining(`${file}:25001: this is not JSON`),
      expect.stringContaining(`${file}:24006: record_count must be`),
    ])
    const [first, second] = descriptors('line', 2)
    const text = JSON.stringify([first, { ...second, record_count: 'many' }, first])
    const oneLine = await baton(['call-back', '--check', '-'], {
      input: text.replace('"many"', '1.00000000000000000001'),
    })
    expect(oneLine.stderr).toContain(
      'stdin:1: element 2: record_count must be a non-negative integer, got the number 1.00000000000000000001\n',
    )
    expect(oneLine.stderr).toContain(
      'stdin:1: element 3: partition_name "line-0-0" names the same partition as element 1',
    )
  })

  test('names both lines if a partition occurs twice', async () => {
    const scratch = new Scratch()
    const twice = descriptors('twice', 12_000)
    const file = scratch.file('twice.ndjson', `\n${lines([...twice, twice[11_000]])}`)
    const { code, stderr } = await baton(['call-back', '--check', file])
    expect(stderr).toBe(
      `baton: ${file}:12002: partition_name "twice-0-11000" names the same partition as line 11002: ` +
        'level 0, index 11000; a partition can occur only once\n',
    )
    expect(code).toBe(4)
  })

  test('names file and line while it streams, and how much is stored', async () => {
    const { url } = service()
    const broken = descriptors('halfway', 6).map((each, at) =>
      at === 4 ? { ...each, record_count: -1 } : each,
    )
    const args = ['call-back', '--stream', '--per-request', '3', '-']
    const { code, stderr } = await baton(args, { url, input: lines(broken) })
    expect(stderr).toBe(
      'baton: stdin:5: record_count must be a non-negative integer, got the number -1\nStored before that: 3 descriptors.\n',
    )
    expect(code).toBe(4)
  })

  test('hints at the name of the table field if a file and the command, or the service, differ', async () => {
    const { url } = service()
    const hint = 'If the service uses the name "warehouseTable" for the table field'
    const named = descriptors('named', 2).map(({ computeTableName, ...others }) => ({
      ...others,
      warehouseTable: computeTableName,
    }))
    for (const flags of [['--check'], ['--stream']]) {
      const { code, stderr } = await baton(['call-back', '-', ...flags], { url, input: lines(named) })
      expect(stderr.split('\n').slice(-2)).toEqual([expect.stringContaining(hint), ''])
      expect(code).toBe(4)
    }
    const refused = await baton(['call-back', '-', '--table-field', 'warehouseTable'], {
      url,
      input: lines(named),
    })
    expect(refused.stderr).toContain('If the service uses the name "computeTableName" for the table field')
    expect(refused.code).toBe(1)
  })

  test('reports when there is no disk space to buffer stdin for the check', async () => {
    const env = { TMPDIR: new Scratch().file('no-folder', '') }
    const { code, stdout, stderr } = await baton(['call-back', '-'], {
      input: lines(descriptors('homeless', 3)),
      env,
    })
    expect(stderr).toBe(
      `baton: stdin cannot be stored in ${env.TMPDIR} for the check (ENOTDIR): ` +
        'set another folder with TMPDIR, or use --stream, which stores nothing\n',
    )
    expect(stdout).toBe('')
    expect(code).toBe(1)
  })

  test.each([
    ['taskId,computeTableName\norders,results.orders\n', 'this looks like CSV, not JSON'],
    ['"taskId","computeTableName"\n"orders","results.orders"\n', 'this looks like CSV, not JSON'],
    ['\n  taskId: orders\n', 'this is not JSON'],
  ])('refuses %j and names the accepted formats', async (input, complaint) => {
    const { code, stderr } = await baton(['call-back', '--check', '-'], { input })
    const line = input.startsWith('\n') ? 2 : 1
    expect(stderr).toBe(
      `baton: stdin:${line}: ${complaint}: expected JSON objects, one per line, or a JSON array of objects\n`,
    )
    expect(code).toBe(4)
  })

  test('only checks if requested, without a service', async () => {
    const input = lines(descriptors('checked', 3))
    expect(await baton(['call-back', '--check', '-'], { input })).toMatchObject({
      code: 0,
      stdout: '3 descriptors conform to the contract\n',
    })
    expect(await baton(['call-back', '--check', '-'], { input: '' })).toMatchObject({ code: 4 })
  })

  test('streams if requested', async () => {
    const { url } = service()
    const client = new BatonClient(url)
    const sending = startBaton(['call-back', '--stream', '--per-request', '2', '-'], {
      url,
      input: lines(descriptors('streamed', 5)),
    })
    expect(await sending.ended).toMatchObject({
      code: 0,
      stdout: 'streamed: 5 partitions accepted, in 3 requests\n',
    })
    expect(await rowsOf(client, 'streamed')).toHaveLength(5)
  })

  test('reports what the service refuses', async () => {
    const { url } = service()
    await baton(['call-back', '-'], { url, input: lines(descriptors('conflict', 3)) })
    const changed = lines(descriptors('conflict', 3, 99))
    const refused = await baton(['call-back', '-'], { url, input: changed })
    expect(refused.code).toBe(1)
    expect(refused.stderr).toContain('already exists with different content')
    expect(refused.stderr).toContain(
      '  stdin:2: conflict-0-1: record_count is 99 in the request and 10 in the stored descriptor\n',
    )
    const later = [...descriptors('conflict', 3), ...descriptors('conflict', 5, 99).slice(3)]
    await baton(['call-back', '-'], { url, input: lines(descriptors('conflict', 5)) })
    const split = await baton(['call-back', '--per-request', '2', '-'], { url, input: lines(later) })
    expect(split.stderr).toContain('  stdin:4: conflict-0-3: record_count')
    expect(split.stderr).not.toContain('stdin:3')
    expect(split.stderr).toContain('Stored before that: 2 descriptors.')
    const asJson = await baton(['call-back', '-', '--json'], { url, input: changed })
    expect(JSON.parse(asJson.stderr)).toMatchObject({
      error: { code: 'partition_conflict', conflicts: [{}, {}, {}] },
    })
  })

  test('reports an error that only the service finds as refused, not as unsent', async () => {
    const { url } = service()
    const input = lines(descriptors('noted', 3).map((each, at) => (at === 1 ? { ...each, note: 'x' } : each)))
    const { code, stderr } = await baton(['call-back', '--unknown-fields', 'ignore', '-'], { url, input })
    expect(stderr).toContain('  stdin:2: "note" is not a field of the contract')
    expect(code).toBe(1)
  })

  test.each([
    ['[{]', 'stdin:1: this is not JSON'],
    ['[1, 2', 'stdin:1: the array is not closed'],
    ['\n\nnonsense', 'stdin:3: this is not JSON'],
    ['[] []', 'stdin:1: unexpected data after the array: "["'],
  ])('refuses input that is not JSON: %j', async (input, complaint) => {
    const { code, stderr } = await baton(['call-back', '--check', '-'], { input })
    expect(stderr).toContain(complaint)
    expect(code).toBe(4)
  })

  test('accepts a path that can be read only once, as <(compute) does', async () => {
    const { url } = service()
    const file = new Scratch().file('lines.ndjson', lines(descriptors('once', 3)))
    const program = [process.execPath, ...programArguments('command')].map((word) => `'${word}'`)
    const command = `${program.join(' ')} call-back`
    const shell = (script: string) =>
      promisify(execFile)('bash', ['-c', script], { env: { ...process.env, BATON_URL: url } })
    const known = 'once: 0 partitions accepted, 3 already stored\n'
    expect((await shell(`${command} <(cat '${file}')`)).stdout).toBe('once: 3 partitions accepted\n')
    expect((await shell(`cat '${file}' | ${command} /dev/stdin`)).stdout).toBe(known)
    expect(
      (await shell(`mkfifo '${file}.pipe'; cat '${file}' > '${file}.pipe' & ${command} '${file}.pipe'`))
        .stdout,
    ).toBe(known)
  })

  test.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)('%s ends the wait for a pipe without a writer', async (signal, code) => {
    const scratch = new Scratch()
    const pipe = scratch.file('pipe')
    execFileSync('mkfifo', [pipe])
    const waiting = startBaton(['call-back', pipe], { env: { TMPDIR: scratch.path } })
    // The folder for its buffer is created just before it reads.
    await until(() => scratch.names().some((name) => name.startsWith('baton-')))
    waiting.process.kill(signal)
    expect(await waiting.ended).toMatchObject({ code })
    expect(scratch.names()).toEqual(['pipe'])
  })

  test('names files that are missing or in another encoding', async () => {
    const scratch = new Scratch()
    const { writeFileSync } = await import('node:fs')
    const file = scratch.file('utf16.json')
    writeFileSync(file, Buffer.from(JSON.stringify(descriptors('x', 1)), 'utf16le'))
    expect(await baton(['call-back', '--check', file])).toMatchObject({ code: 4 })
    const missing = await baton(['call-back', scratch.file('missing')])
    expect(missing).toMatchObject({ code: 2 })
    expect(missing.stderr).toContain('cannot be read (ENOENT)')
    const folder = await baton(['call-back', scratch.file('.')])
    expect(folder).toMatchObject({ code: 2 })
    expect(folder.stderr).toContain('is a folder, not a file')
  })

  test('exits with 5 if the service is unavailable', async () => {
    const { code, stderr } = await baton(['call-back', '-', '--timeout', '0'], {
      url: 'http://127.0.0.1:2',
      input: lines(descriptors('x', 1)),
    })
    expect(code).toBe(5)
    expect(stderr).toContain('Check that the service is running')
  })

  test('reports what is stored when a service stops halfway, also in JSON', async () => {
    const url = await goesAwayAfter(1, { taskId: 'halfway', accepted: 2, duplicates: 0 })
    const args = ['call-back', '-', '--per-request', '2', '--timeout', '0', '--json']
    const { code, stderr } = await baton(args, { url, input: lines(descriptors('halfway', 3)) })
    expect(JSON.parse(stderr)).toMatchObject({
      error: { name: 'UnreachableError', stored: { sent: 2, accepted: 2, duplicates: 0 } },
    })
    expect(code).toBe(5)
  })
})

/** Answers this many requests, then disconnects at each. */
async function goesAwayAfter(requests: number, answer: object): Promise<string> {
  let left = requests
  const { url } = await localServer((request, response) => {
    left -= 1
    if (left < 0) request.socket.destroy()
    else response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
  })
  return url
}
