import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { root } from '../docs/support/markdown.ts'
import { withoutPython } from '../support/python.ts'

test.skipIf(await withoutPython('examples/orders', 'psycopg'))(
  'a table is split, worked on in both languages with a killed and a stopped worker, and proved',
  async () => {
    const program = ['--conditions=baton-source', 'examples/orders/main.ts']
    const size = ['--rows', '20000', '--records-per-partition', '200']
    const { stdout } = await promisify(execFile)(process.execPath, [...program, ...size], { cwd: root })
    expect(stdout).toContain('20000 records in 101 partitions')
    expect(stdout).toContain('proved: every record was counted once; declared, reported and read are equal')
    expect(stdout).not.toContain('FAULT')
    // Time, time in requests, processor time of the service.
    expect(stdout).toMatch(/^call back +[\d.]+ s +[\d.]+ s +\d+ % +[\d.]+ s +\d+ %$/m)
    expect(stdout).toMatch(/^work +[\d.]+ s +[\d.]+ s +\d+ %$/m)
    expect(stdout).toMatch(/read without Baton in [\d.]+ s, through Baton in [\d.]+ s: [\d.]+ times/)
    expect(stdout).toMatch(/late writes that the fencing token refused: orders-/)
    expect(stdout).toMatch(/gone on from a checkpoint: orders-/)
    expect(stdout).toMatch(/results\.orders had at most [1-5] leases at a time; its limit is 5/)
    // Both of them held partitions, which others got.
    const [, wasted] = /(\d+) attempts were wasted/.exec(stdout) ?? []
    expect(Number(wasted)).toBeGreaterThanOrEqual(2)
  },
)
