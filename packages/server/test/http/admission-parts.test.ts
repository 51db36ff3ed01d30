import type { IncomingHttpHeaders } from 'node:http'
import type { Socket } from 'node:net'
import fc from 'fast-check'
import { describe, expect, onTestFinished, test } from 'vitest'
import { quiet } from '../../../../test/support/quiet-log.ts'
import { sheddingOrder } from '../../src/http/admission/access.ts'
import { networkOfSocket } from '../../src/http/admission/proxies.ts'
import { JsonShape, MAX_DEPTH } from '../../src/http/bodies/json-shape.ts'
import { Overload } from '../../src/http/limits/limiter.ts'
import { ReachedLimits } from '../../src/http/limits/limits.ts'
import { RateLimit } from '../../src/http/limits/rate-limit.ts'
import { ReceivedBytes } from '../../src/http/limits/received-bytes.ts'
import { openLimiter } from '../support/open-limiter.ts'

describe('the shape of a body', () => {
  const generous = { elements: 1e9, values: 1e9, elementBytes: 1e9 }
  const large = (text: string) => Buffer.from(`${text}${' '.repeat(64 * 1024)}`)

  /** What JSON.parse finds: all values without the outermost, and the elements of the outermost. */
  function counted(value: unknown): { values: number; depth: number; elements: number } {
    if (typeof value !== 'object' || value === null) return { values: 0, depth: 0, elements: 0 }
    const parts = Object.values(value)
    const inner = parts.map(counted)
    const separators = Math.max(0, parts.length - 1)
    return {
      values: 1 + separators + inner.reduce((sum, part) => sum + part.values, 0),
      depth: 1 + Math.max(0, ...inner.map(({ depth }) => depth)),
      elements: parts.length,
    }
  }

  test('is what the parser would find, however the bytes are split', () => {
    const strings = fc.oneof(fc.string(), fc.constantFrom('"', '\\', '[{,', '\\"', '\\\\', ']}'))
    const { tree } = fc.letrec((tie) => ({
      tree: fc.oneof(
        { maxDepth: 4 },
        fc.oneof(strings, fc.integer(), fc.boolean(), fc.constant(null)),
        fc.array(tie('tree'), { maxLength: 5 }),
        fc.dictionary(strings, tie('tree'), { maxKeys: 5 }),
      ),
    }))
    fc.assert(
      fc.property(fc.array(tree, { minLength: 2 }), fc.integer({ min: 1, max: 40 }), (body, size) => {
        const bytes = large(JSON.stringify(body))
        const { values, elements } = counted(body)
        const fits = (limits: { elements: number; values: number }) => {
          const shape = new JsonShape({ ...generous, ...limits })
          for (let at = 0; at < bytes.length; at += size) {
            // The padding does not count, and splitting it would only take time.
            const chunk = at > 4096 ? bytes.subarray(at) : bytes.subarray(at, at + size)
            const fault = shape.take(chunk)
            if (fault !== undefined) return fault
            if (at > 4096) break
          }
          return undefined
        }
        expect(fits({ elements, values })).toBe(undefined)
        expect(fits({ elements: elements - 1, values })).toBe('elements')
        expect(fits({ elements, values: values - 1 })).toBe('values')
      }),
      { numRuns: 300 },
    )
  })

  test('has a maximum depth', () => {
    const nested = (depth: number) => large(`${'['.repeat(depth)}${']'.repeat(depth)}`)
    expect(new JsonShape(generous).take(nested(MAX_DEPTH))).toBe(undefined)
    expect(new JsonShape(generous).take(nested(MAX_DEPTH + 1))).toBe('depth')
  })

  test.each([
    ['[1,"aaaaaaaa",2]', undefined],
    ['[1,"aaaaaaaaa",2]', 1],
    ['[1,["aaaa",2]]', undefined],
    ['[1,["aaaaa",2]]', 1],
    ['["aaaaaaaaa",2]', 0],
    ['["aaaaaaaaa', 0],
    ['            [1', 0],
  ])('has elements of a maximum size, however the bytes are split: %s', (text, oversized) => {
    const bytes = Buffer.from(text)
    const end = Buffer.alloc(64 * 1024, ' ')
    for (const size of [1, 3, bytes.length]) {
      const shape = new JsonShape({ ...generous, elementBytes: 10 })
      for (let at = 0; at < bytes.length; at += size) shape.take(bytes.subarray(at, at + size))
      // Spaces before the first bracket and after the last one belong to no element.
      const fault = shape.take(end)
      expect([fault, shape.oversized]).toEqual([
        oversized === undefined ? undefined : 'element-size',
        oversized,
      ])
    }
  })
})

describe('received bytes', () => {
  test('are freed from the body that has held most for longest, and never from a complete one', () => {
    const received = new ReceivedBytes(100, new ReachedLimits(quiet))
    const givenUp: string[] = []
    const hold = (name: string) => {
      const body = received.hold(false, undefined, () => {
        givenUp.push(name)
        body.release()
      })
      return body
    }
    const [arrived, small, large] = [hold('arrived'), hold('small'), hold('large')]
    expect([arrived.add(50), small.add(1), large.add(40)]).toEqual([true, true, true])
    arrived.arrived()
    expect(hold('next').add(30)).toBe(true)
    expect(givenUp).toEqual(['large'])
    expect(hold('too much').add(60)).toBe(false)
    expect(received.held).toBeGreaterThanOrEqual(50)
  })

  test('count until they are no longer in use', () => {
    const received = new ReceivedBytes(100, new ReachedLimits(quiet))
    const body = received.hold(false, undefined, () => {})
    body.add(10)
    body.retain()
    body.release()
    expect(received.held).toBe(10)
    body.release()
    expect(received.held).toBe(0)
  })

  test('have a quarter more for urgent requests', () => {
    const received = new ReceivedBytes(100, new ReachedLimits(quiet))
    const full = received.hold(false, undefined, () => {})
    full.add(100)
    full.arrived()
    expect(received.hold(true, undefined, () => {}).add(25)).toBe(true)
    expect(received.hold(true, undefined, () => {}).add(1)).toBe(false)
  })
})

describe('an event loop', () => {
  const refused = (late: readonly number[]) => {
    const overload = new Overload(100)
    for (const millis of late) overload.note(millis)
    return sheddingOrder.filter((urgency) => overload.refuses(urgency))
  }

  test.each([
    [[99, 99, 99], []],
    [[5000, 5000, 10], []],
    [[100, 5000, 5000], ['call-back']],
    [
      [200, 200, 200],
      ['call-back', 'view'],
    ],
    [
      [400, 400, 400],
      ['call-back', 'view', 'pull'],
    ],
    [
      [800, 800, 800],
      ['call-back', 'view', 'pull', 'urgent'],
    ],
    [[800, 800, 800, 0], []],
  ])('with checks that are %j ms late makes the node refuse %j', (late, kinds) => {
    expect(refused(late)).toEqual(kinds)
  })
})

describe('callers', () => {
  const socket = { remoteAddress: '10.0.0.7' } as Socket
  const named = { nameOf: ({ authorization }: IncomingHttpHeaders) => authorization ?? null }
  const limiterWith = (...options: Parameters<typeof openLimiter>) => {
    const limiter = openLimiter(...options)
    onTestFinished(() => limiter.stop())
    return limiter
  }

  test('are identified by the names of their tokens, or without tokens by their addresses', () => {
    const limiter = limiterWith({}, named)
    const callers = ['one', 'two', undefined].map((authorization) =>
      limiter.quotaKeyOf({ authorization }, socket),
    )
    expect(callers).toEqual(['token one', 'token two', '10.0.0.7'])
    expect(limiterWith().quotaKeyOf({ authorization: 'one' }, socket)).toBe('10.0.0.7')
  })

  test('behind a trusted proxy have the address that it reports', () => {
    const headers = { 'x-forwarded-for': '192.0.2.1' }
    expect(limiterWith({}, undefined, ['10.0.0.7']).quotaKeyOf(headers, socket)).toBe('192.0.2.1')
    expect(limiterWith().quotaKeyOf(headers, socket)).toBe('10.0.0.7')
  })

  test('have their own number of waiting pulls', async () => {
    const { waiting, reached } = limiterWith({ waitingPullsPerCaller: 1 })
    const gate = Promise.withResolvers<void>()
    const pull = (caller: string) =>
      waiting.within({ waitMillis: 1000, queryBytes: 0, quotaKeyOf: () => caller }, async (millis) => {
        if (millis > 0) await gate.promise
        return millis
      })
    const first = pull('one')
    expect(await pull('one')).toBe(0)
    const other = pull('two')
    gate.resolve()
    expect([await first, await other, await pull('one')]).toEqual([1000, 1000, 1000])
    expect(reached.counts['caller-waiting-pulls']).toBe(1)
  })
})

test('a rate limit allows the requests of a second at once, and then one at a time', () => {
  const rate = new RateLimit(2)
  expect([rate.secondsToWait('a', 0), rate.secondsToWait('a', 0)]).toEqual([0, 0])
  expect(rate.secondsToWait('a', 0)).toBe(0.5)
  expect(rate.secondsToWait('b', 0)).toBe(0)
  expect(rate.secondsToWait('a', 500)).toBe(0)
  expect(rate.secondsToWait('a', 600)).toBeCloseTo(0.4)
})

test('reaching a limit is logged at once, and then with the number of later cases', () => {
  const lines: object[] = []
  const reached = new ReachedLimits({ ...quiet, warn: (fields) => lines.push(fields) })
  for (let times = 0; times < 5; times += 1) reached.note('rate', '10.0.0.7')
  expect(reached.counts.rate).toBe(5)
  expect(lines).toMatchObject([
    { bound: 'rate', times: 1, setting: '--max-requests-per-second', address: '10.0.0.7' },
  ])
})

test.each([
  ['10.0.0.7', '10.0.0.7'],
  ['::ffff:10.0.0.7', '10.0.0.7'],
  ['::1', '0:0:0:0::/64'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:db8::5', '2001:db8:0:0::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
])('connections from %s are counted as %s', (remoteAddress, address) => {
  expect(networkOfSocket({ remoteAddress } as never)).toBe(address)
})
