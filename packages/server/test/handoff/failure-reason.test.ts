import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { failureReason, lineOf, masked } from '../../src/handoff/rules/failure-reason.ts'

const reasonOf = (reported: string | null) => failureReason('failed', reported).reason
const keyOf = (reported: string | null) => failureReason('failed', reported).key

const python = `Traceback (most recent call last):
  File "/app/load.py", line 41, in load
    cursor.execute(query)
psycopg.errors.LockNotAvailable: could not obtain lock on relation "orders"
LINE 1: LOCK TABLE orders
        ^`

const pythonChain = `Traceback (most recent call last):
  File "/app/load.py", line 12, in load
    raise KeyError(1)
KeyError: 1

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/app/load.py", line 14, in load
    raise LoadError("no such key")
load.LoadError: no such key`

const node = `/app/load.js:10
    throw new TypeError('rows is not iterable')
    ^

TypeError: rows is not iterable
    at load (/app/load.js:10:9)
    at node:internal/main/run_main_module:36:49 {
  code: 'X'
}

Node.js v24.1.0`

const java = `Exception in thread "main" java.lang.RuntimeException: load failed
	at com.acme.Load.main(Load.java:7)
Caused by: java.sql.SQLException: Connection refused
	at com.acme.Load.connect(Load.java:21)
	... 1 more`

const go = `panic: runtime error: invalid memory address

goroutine 1 [running]:
main.main()
	/app/main.go:7 +0x1d
exit status 2`

const rust = `thread 'main' panicked at src/main.rs:4:5:
no such table
note: run with \`RUST_BACKTRACE=1\` environment variable to display a backtrace`

const ruby = `load.rb:3:in 'load': no such table (RuntimeError)
	from load.rb:9:in '<main>'`

describe('the line that says what went wrong', () => {
  test.each([
    ['Python', python, 'psycopg.errors.LockNotAvailable: could not obtain lock on relation "orders"'],
    ['Python with a chain', pythonChain, 'load.LoadError: no such key'],
    ['Node', node, 'TypeError: rows is not iterable'],
    ['Java', java, 'java.sql.SQLException: Connection refused'],
    ['Go', go, 'panic: runtime error: invalid memory address'],
    ['Rust', rust, 'no such table'],
    ['Ruby', ruby, "load.rb:3:in 'load': no such table (RuntimeError)"],
    ['one line', ' the table is locked \n', 'the table is locked'],
    ['the output of a program', 'reading\nwriting\nfatal: the disk is full\n', 'fatal: the disk is full'],
    ['an error with remarks', 'ERROR: duplicate key\nDETAIL: Key (id)\nHINT: none', 'ERROR: duplicate key'],
    ['an error with an indented question', 'psql: error: refused\n\tIs it running?', 'psql: error: refused'],
  ])('of %s', (_, reported, line) => {
    expect(lineOf(reported)).toBe(line)
    // `baton work` puts the exit code in front.
    expect(lineOf(`exit code 1: ${reported}`).endsWith(line)).toBe(true)
  })

  test('does not depend on what a traceback went through', () => {
    const frames = fc.array(fc.tuple(fc.stringMatching(/^[a-z]{1,8}$/), fc.nat(999)), { maxLength: 8 })
    fc.assert(
      fc.property(frames, fc.constantFrom('ValueError: bad row', 'TimeoutError'), (calls, error) => {
        const told = calls.map(([name, line]) => `  File "/a.py", line ${line}, in ${name}\n    ${name}()`)
        const reported = ['Traceback (most recent call last):', ...told, error].join('\n')
        expect(reasonOf(reported)).toBe(error)
        const frame = calls.map(([name, line]) => `    at ${name} (/a.js:${line}:1)`)
        expect(reasonOf([error, ...frame].join('\n'))).toBe(error)
      }),
    )
  })
})

describe('numbers and ids', () => {
  test.each([
    ['timeout after 30012 ms on host17', 'timeout after # ms on host#'],
    ['row 1,234.5 of 3_000 in 1.5s', 'row # of # in #s'],
    ['orders-2026-03-0-17 failed', 'orders-#-#-#-# failed'],
    ['connect ECONNREFUSED 10.0.3.17:5432', 'connect ECONNREFUSED #:#'],
    ['at 2026-03-01T12:00:05.123Z and 2026-03-01', 'at <time> and <time>'],
    ['lease 3f2504e0-4f89-11d3-9a0c-0305e82c3301', 'lease <id>'],
    ['at 0x7ffe12ab, commit a3f9c2d1b4', 'at <id>, commit <id>'],
    ['request 01ARZ3NDEKTSV4RRFFQ69G5FAV', 'request <id>'],
    [`open '/tmp/x y/1' and "s3://results/a"`, `open '<path>' and "<path>"`],
    ['relation "orders" is locked', 'relation "orders" is locked'],
    ['utf8, md5, x509 and s3', 'utf8, md5, x509 and s3'],
  ])('%s', (line, shown) => {
    expect(masked(line)).toBe(shown)
    expect(masked(shown)).toBe(shown)
  })

  test.each([
    'exit code 137',
    'HTTP 503',
    'HTTP/1.1 404 Not Found',
    'status code: 429',
    '[Errno 111] Connection refused',
    'ORA-01555: snapshot too old',
    'SQLSTATE 40P01',
    'ERROR 1062 (HY000): duplicate',
    'signal 9',
  ])('codes are kept: %s', (line) => expect(masked(line)).toBe(line))

  test('reasons that differ in nothing else are one group, whatever the numbers and ids are', () => {
    const words = fc.array(fc.constantFrom('locked', 'by', 'row', 'timed out', 'of', 'table'), {
      minLength: 1,
    })
    const number = fc.oneof(
      fc.nat().map(String),
      fc.double({ min: 0, max: 1e9, noNaN: true }).map((value) => value.toFixed(2)),
    )
    const kinds = [
      number,
      fc.uuid(),
      fc
        .date({ min: new Date(0), max: new Date('2999-01-01'), noInvalidDate: true })
        .map((at) => at.toISOString()),
      fc.nat().map((path) => `'/data/${path}/x'`),
      fc.integer({ min: 0x1a0000000, max: 0x1affffffff }).map((id) => `0x${id.toString(16)}`),
    ]
    const two = fc.oneof(...kinds.map((kind) => fc.tuple(kind, kind)))
    fc.assert(
      fc.property(fc.array(fc.tuple(words, two), { minLength: 1, maxLength: 5 }), (parts) => {
        const [one, other] = [0, 1].map((at) =>
          parts.map(([said, values]) => `${said.join(' ')} ${values[at]}`).join(' '),
        ) as [string, string]
        expect(masked(one)).toBe(masked(other))
        expect(keyOf(one)).toBe(keyOf(other))
      }),
    )
  })

  test('reasons that differ in their words are different groups', () => {
    const words = fc.array(fc.stringMatching(/^[b-z]{3,7}$/), { minLength: 1, maxLength: 6 })
    fc.assert(
      fc.property(words, words, (one, other) => {
        fc.pre(one.join(' ') !== other.join(' '))
        expect(keyOf(one.join(' '))).not.toBe(keyOf(other.join(' ')))
      }),
    )
  })
})

describe('a key', () => {
  test('is short, safe in a URL and on a command line, and depends on nothing but the reason', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 400 }), (reported) => {
        const { key, reason } = failureReason('failed', reported)
        expect(key).toMatch(/^[a-z][a-z0-9-]{1,32}$/)
        expect(failureReason('failed', reported)).toEqual({ key, reason })
        if (reason === null) return
        expect(reason.length).toBeLessThanOrEqual(200)
        expect(reason.isWellFormed()).toBe(true)
        expect(reason).not.toMatch(/[\r\n]/)
      }),
    )
  })

  test('names what has no reason of its own', () => {
    expect([null, '', ' \n '].map(keyOf)).toEqual(['none', 'none', 'none'])
    expect(failureReason('expired', 'the lease of attempt 3 expired').key).toBe('expired')
    expect(failureReason('revoked', null).key).toBe('revoked')
  })

  test('is found in a bounded time, whatever is reported', () => {
    for (const text of ["'/", '0x', 'a1', 'error 1', '2026-03-', 'at ', 'Traceback '])
      expect(keyOf(text.repeat(50_000))).toMatch(/^[a-z]/)
  })
})
