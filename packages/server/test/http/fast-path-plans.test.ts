import { setTimeout as pause } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { Dice, fuzzSeed } from '../support/mutation.ts'
import { listening, postBytes, RawConnection } from '../support/raw-connection.ts'
import { TestApp } from '../support/test-app.ts'

/** `FUZZ_PLANS=5000` tests more. */
const PLANS = Number(process.env['FUZZ_PLANS'] ?? 300)
const AT_ONCE = 50

const settlement = '[{"leaseId":"1-1-aaaaaaaaaaaaaaaa","outcome":"done"}]'
const post = (path: string, body: string, ...more: string[]) =>
  postBytes(path, body, Object.fromEntries(more.map((line) => line.split(': '))))
const get = (path: string, ...more: string[]) =>
  [`GET ${path} HTTP/1.1`, 'Host: localhost', ...more, '', ''].join('\r\n')

/** Answered whether the client has half-closed or not. */
const steady = [
  post('/settle', settlement),
  post('/settle', settlement, 'X-Instance-Id: w-1'),
  post('/settle', '[]'),
  post('/settle', '[{"leaseId":'),
  post(
    '/settle',
    JSON.stringify(Array.from({ length: 400 }, (_, at) => ({ leaseId: `l-${at}`, outcome: 'done' }))),
  ),
  post('/renew', '["1-1-aaaaaaaaaaaaaaaa"]'),
  get('/livez'),
  get('/nowhere'),
  get('/tasks/none'),
  post('/settle', settlement, 'Connection: close'),
  get('/livez', 'Connection: close'),
  post('/settle', settlement, 'Expect: 100-continue'),
  `POST /settle HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n35\r\n${settlement}\r\n0\r\n\r\n`,
]
/** Clients that have half-closed are not handed any partitions. */
const all = [
  ...steady,
  get('/pull'),
  get('/pull', 'X-Instance-Id: w-1', 'Prefer: batch=5'),
  get('/pull', 'Idempotency-Key: k-1'),
  get('/pull', 'Prefer: batch=nothing'),
  post('/settle', settlement, 'Prefer: batch=3'),
]

/** What is sent on one connection: pieces, and how long to wait before each. */
interface Plan {
  readonly pieces: readonly { readonly bytes: string; readonly afterMillis: number }[]
  /** The client half-closes at the end. Otherwise the last request has Connection: close. */
  readonly halfCloses: boolean
}

function planFrom(dice: Dice): Plan {
  const halfCloses = dice.below(3) === 0
  const picked = Array.from({ length: 1 + dice.below(5) }, () => dice.pick(halfCloses ? steady : all))
  if (!halfCloses) picked.push(get('/livez', 'Connection: close'))
  // Bytes that arrive after the service has closed the connection reset it, and the client loses answers that
  // it has not read yet.
  const last = picked.findIndex((request) => request.includes('Connection: close'))
  const whole = (last === -1 ? picked : picked.slice(0, last + 1)).join('')
  const text = halfCloses && dice.below(2) === 0 ? whole.slice(0, dice.below(whole.length)) : whole
  const pieces: { bytes: string; afterMillis: number }[] = []
  const isSlow = dice.below(3) === 0
  for (let from = 0; from < text.length; ) {
    const length = dice.below(2) === 0 ? text.length : 1 + dice.below(200)
    pieces.push({ bytes: text.slice(from, from + length), afterMillis: isSlow ? dice.below(4) : 0 })
    from += length
  }
  return { pieces, halfCloses }
}

/** All answers until the service closes the connection, without the parts that vary. */
async function transcript(port: number, { pieces, halfCloses }: Plan): Promise<unknown[]> {
  const client = await RawConnection.open(port)
  for (const { bytes, afterMillis } of pieces) {
    if (afterMillis > 0) await pause(afterMillis)
    client.send(bytes)
  }
  if (halfCloses) client.socket.end()
  const answers: unknown[] = []
  while (true) {
    try {
      const { status, headers, text } = await client.answer()
      const { date: _date, 'keep-alive': _keepAlive, ...others } = headers
      answers.push({ status, headers: { ...others, connection: others['connection'] ?? 'keep-alive' }, text })
    } catch {
      return answers
    }
  }
}

test(`${PLANS} plans of requests are answered as without the fast path (FUZZ_SEED=${fuzzSeed})`, async () => {
  const dice = new Dice(fuzzSeed)
  const withFastPath = await listening((await TestApp.open()).app)
  const without = await listening((await TestApp.open({ fastPath: false })).app)
  let answered = 0
  for (let done = 0; done < PLANS; done += AT_ONCE) {
    const plans = Array.from({ length: Math.min(AT_ONCE, PLANS - done) }, () => planFrom(dice))
    await Promise.all(
      plans.map(async (plan) => {
        const [fast, other] = await Promise.all([transcript(withFastPath, plan), transcript(without, plan)])
        expect(fast, JSON.stringify(plan)).toEqual(other)
        answered += fast.length
      }),
    )
  }
  expect(answered).toBeGreaterThan(PLANS)
})
