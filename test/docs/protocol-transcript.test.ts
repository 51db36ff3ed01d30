import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Likeness } from './support/likeness.ts'
import { readDocument } from './support/markdown.ts'
import { ReplayedService } from './support/replay.ts'
import { MORE, parseShown } from './support/shown-json.ts'
import { readTranscript, type ShownReply, type Step } from './support/transcript.ts'

const handOff = readTranscript(readDocument('docs/protocol.md'))
const views = readTranscript(readDocument('docs/protocol-views.md'))
const firstConversation = handOff.slice(
  0,
  handOff.findIndex(({ kind }) => kind === 'service'),
)

/**
 * The exchanges in a page are one conversation: each request is sent in order and its reply compared. The
 * second page continues the first conversation of the first.
 */
describe.each([
  { path: 'docs/protocol.md', before: [], steps: handOff },
  { path: 'docs/protocol-views.md', before: firstConversation, steps: views },
])('$path, replayed', ({ before, steps }) => {
  const likeness = new Likeness()
  let service: ReplayedService

  beforeAll(async () => {
    service = await ReplayedService.open([])
    for (const step of before) await take(step)
  })
  afterAll(() => service.close())

  for (const [at, step] of steps.entries()) test(`${at}: ${titleOf(step)}`, () => take(step))

  test('the document contains exchanges', () => {
    expect(steps.length).toBeGreaterThan(20)
  })

  async function take(step: Step): Promise<void> {
    if (step.kind === 'pause') return service.pass(step.seconds)
    if (step.kind === 'service') {
      await service.close()
      service = await ReplayedService.open(step.flags)
      return
    }
    const { request, reply } = step
    const real = await service.send({
      ...request,
      path: likeness.translate(request.path),
      body: likeness.translate(request.body),
    })
    expect(real.status).toBe(reply.status)
    for (const [name, value] of reply.headers) expect(real.headers[name]).toBe(value)
    expect(likeness.differences(bodyOf(reply), bodyOf({ ...reply, body: real.body }))).toEqual([])
  }
})

function titleOf(step: Step): string {
  if (step.kind === 'pause') return `${step.seconds} seconds pass`
  if (step.kind === 'service') return `a service with ${step.flags.join(' ')}`
  return `${step.request.method} ${step.request.path} is answered ${step.reply.status}`
}

/** A manifest is a line of JSON for each partition; everything else is one document. */
function bodyOf({ headers, body }: ShownReply): unknown {
  if (body === '') return null
  const isLines = headers.some(([name, value]) => name === 'content-type' && value === 'application/x-ndjson')
  return isLines
    ? body
        .trim()
        .split('\n')
        .map((line) => (line === MORE ? MORE : parseShown(line)))
    : parseShown(body)
}
