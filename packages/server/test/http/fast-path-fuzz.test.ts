import { setTimeout as pause } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { Dice, fuzzSeed, mutateBytes } from '../support/mutation.ts'
import { listening, RawConnection } from '../support/raw-connection.ts'
import { TestApp } from '../support/test-app.ts'

/** Each run has another seed; after changes to the fast path, try more with FUZZ_REQUESTS. */
const REQUESTS = Number(process.env['FUZZ_REQUESTS'] ?? 300)
const AT_ONCE = 150
/**
 * If neither service answers a request within this time, while they answer others, it counts as incomplete.
 */
const UNANSWERED_MILLIS = 500
/** A service that has not answered by then, although the other has, never will. */
const NEVER_MILLIS = 60_000

const requests = [
  ['GET /pull HTTP/1.1', 'Host: localhost', 'X-Instance-Id: w-1', 'Prefer: batch=2', 'Accept: */*'],
  ['GET /pull HTTP/1.1', 'Host: localhost:7070', 'Connection: keep-alive', 'Idempotency-Key: k-1'],
  ['POST /settle HTTP/1.1', 'Host: localhost', 'Content-Type: application/json', 'Content-Length: 53'],
  [
    'POST /settle HTTP/1.1',
    'Host: 127.0.0.1',
    'Prefer: batch=1',
    'Content-Type: application/json',
    'Content-Length: 53',
  ],
] as const

const settlement = '[{"leaseId":"1-1-aaaaaaaaaaaaaaaa","outcome":"done"}]'

/** Changes whole lines, which flipping bytes rarely does. */
const changes: readonly ((lines: string[], dice: Dice) => void)[] = [
  (lines, dice) => lines.push(dice.pick(lines.slice(1))),
  (lines, dice) => lines.splice(dice.below(lines.length), 1),
  (lines, dice) => lines.splice(1 + dice.below(lines.length), 0, ' folded'),
  (lines) => lines.push('Transfer-Encoding: chunked'),
  (lines) => lines.push('Content-Length: 3'),
  (lines) => lines.push('Connection: close'),
  (lines) => lines.push('Proxy-Connection: close'),
  (lines) => lines.push('Expect: 100-continue'),
  (lines) => lines.push('Origin: http://example.org'),
  (lines) => lines.push('Authorization: Bearer x'),
  (lines, dice) => {
    const at = 1 + dice.below(lines.length - 1)
    lines[at] = (lines[at] ?? '').replace(':', dice.pick([' :', '', '::', ':\t']))
  },
  (lines, dice) => {
    lines[0] = dice.pick([
      'GET /pull HTTP/1.0',
      'GET /pull HTTP/2.0',
      'POST /pull HTTP/1.1',
      'GET /settle HTTP/1.1',
      'GET /pull',
    ])
  },
]

function requestFrom(dice: Dice): Buffer {
  const lines = [...dice.pick(requests)]
  const body = lines[0]?.startsWith('POST') ? settlement : ''
  const roll = dice.below(10)
  if (roll < 5) dice.pick(changes)(lines, dice)
  const end = roll === 5 ? dice.pick(['\n', '\r', '\r\n ']) : '\r\n'
  const text = `${lines.join(end)}\r\n\r\n${body}`
  return roll > 6 ? mutateBytes(text, dice) : Buffer.from(text)
}

/** What a client sees of the answer to a request that it sends alone. */
async function ask(port: number, request: Buffer): Promise<Requested> {
  const client = await RawConnection.open(port)
  client.send(request)
  const seen = client.answer().then(
    ({ status, headers: { date: _date, 'keep-alive': _keepAlive, ...headers }, text }) => ({
      status,
      headers: { ...headers, connection: headers['connection'] ?? 'keep-alive' },
      text,
    }),
    () => 'closed',
  )
  return { seen, hangUp: () => client.socket.destroy() }
}

interface Requested {
  readonly seen: Promise<unknown>
  hangUp(): void
}

/**
 * Later connections are accepted and answered after earlier ones, so the result does not depend on the load of
 * the machine. A connection that is kept open would overtake them.
 */
async function silence(ports: readonly number[]): Promise<'unanswered'> {
  await pause(UNANSWERED_MILLIS)
  const look = (port: number) => fetch(`http://127.0.0.1:${port}/tasks`, { headers: { connection: 'close' } })
  for (const _twice of [1, 2]) await Promise.all(ports.map(look))
  return 'unanswered'
}

/** As soon as one service answers, the other may take as long as it needs. */
async function outcomes(asked: readonly Requested[], ports: readonly number[]): Promise<unknown[]> {
  const answers = asked.map(({ seen }) => seen)
  const first = await Promise.race([...answers, silence(ports)])
  const never = () => pause(NEVER_MILLIS, 'unanswered', { ref: false })
  const seen =
    first === 'unanswered'
      ? answers.map(() => first)
      : await Promise.all(answers.map((answer) => Promise.race([answer, never()])))
  for (const { hangUp } of asked) hangUp()
  return seen
}

test(`${REQUESTS} plain and mutated requests are answered as without the fast path (FUZZ_SEED=${fuzzSeed})`, async () => {
  const dice = new Dice(fuzzSeed)
  const withFastPath = await listening((await TestApp.open()).app)
  const without = await listening((await TestApp.open({ fastPath: false })).app)
  const ports = [withFastPath, without]
  const seen = new Map<string, number>()
  for (let sent = 0; sent < REQUESTS; sent += AT_ONCE) {
    await Promise.all(
      Array.from({ length: AT_ONCE }, () => requestFrom(dice)).map(async (request) => {
        const asked = await Promise.all(ports.map((port) => ask(port, request)))
        const [fast, other] = await outcomes(asked, ports)
        expect(fast, `${JSON.stringify(request.toString('latin1'))}`).toEqual(other)
        const kind = typeof fast === 'string' ? fast : String((fast as { status: number }).status)
        seen.set(kind, (seen.get(kind) ?? 0) + 1)
      }),
    )
  }
  expect(seen.get('200')).toBeGreaterThan(REQUESTS / 10)
  expect(seen.get('400')).toBeGreaterThan(REQUESTS / 50)
})
