import { BatonClient } from '@baton/client'
import { describe, expect, test } from 'vitest'
import { descriptors } from '../../client/test/support/descriptors.ts'
import { rowsOf } from '../../client/test/support/partition-states.ts'
import { ServiceProcess } from '../../client/test/support/service-process.ts'
import { baton, startBaton } from './support/baton.ts'
import { Scratch } from './support/scratch.ts'

const service = ServiceProcess.shared()
const lines = (values: readonly unknown[]) => values.map((value) => `${JSON.stringify(value)}\n`).join('')

describe('baton call-back', () => {
  test('takes a JSON array or lines, from a file or from stdin', async () => {
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
    expect(again).toMatchObject({ code: 0, stdout: 'lines: 1 partition accepted, 3 already known\n' })
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

  test('only checks when asked to, without a service', async () => {
    const input = lines(descriptors('checked', 3))
    expect(await baton(['call-back', '--check', '-'], { input })).toMatchObject({
      code: 0,
      stdout: '3 descriptors as the contract asks for\n',
    })
    expect(await baton(['call-back', '--check', '-'], { input: '' })).toMatchObject({ code: 4 })
  })

  test('sends while it reads when asked to', async () => {
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

  test('says what the service refuses', async () => {
    const { url } = service()
    await baton(['call-back', '-'], { url, input: lines(descriptors('conflict', 3)) })
    const changed = lines(descriptors('conflict', 3, 99))
    const refused = await baton(['call-back', '-'], { url, input: changed })
    expect(refused.code).toBe(1)
    expect(refused.stderr).toContain('already known with other content')
    const asJson = await baton(['call-back', '-', '--json'], { url, input: changed })
    expect(JSON.parse(asJson.stderr)).toMatchObject({
      error: { code: 'partition_conflict', conflicts: [{}, {}, {}] },
    })
  })

  test.each([
    ['[{]', 'stdin:1: this is not JSON'],
    ['[1, 2', 'stdin:1: the array is not closed'],
    ['\n\nnonsense', 'stdin:3: this is not JSON'],
    ['[] []', 'stdin:1: after the array there is "["'],
  ])('input that is no JSON: %j', async (input, complaint) => {
    const { code, stderr } = await baton(['call-back', '--check', '-'], { input })
    expect(stderr).toContain(complaint)
    expect(code).toBe(4)
  })

  test('other encodings and missing files are named', async () => {
    const scratch = new Scratch()
    const { writeFileSync } = await import('node:fs')
    const file = scratch.file('utf16.json')
    writeFileSync(file, Buffer.from(JSON.stringify(descriptors('x', 1)), 'utf16le'))
    expect(await baton(['call-back', '--check', file])).toMatchObject({ code: 4 })
    const missing = await baton(['call-back', scratch.file('missing')])
    expect(missing).toMatchObject({ code: 2 })
    expect(missing.stderr).toContain('cannot be read (ENOENT)')
  })

  test('a service that is away is exit code 5', async () => {
    const { code, stderr } = await baton(['call-back', '-', '--timeout', '0'], {
      url: 'http://127.0.0.1:1',
      input: lines(descriptors('x', 1)),
    })
    expect(code).toBe(5)
    expect(stderr).toContain('Is the service running?')
  })
})
