import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Likeness } from './support/likeness.ts'
import { readDocument } from './support/markdown.ts'
import { ReplayedService } from './support/replay.ts'
import { readTranscript, type ShownReply } from './support/transcript.ts'

/**
 * The exchanges in docs/protocol.md are one conversation: each request is sent in order and its reply
 * compared.
 */
describe('docs/protocol.md, replayed', () => {
  const steps = readTranscript(readDocument('docs/protocol.md'))
  const likeness = new Likeness()
  let service: ReplayedService

  beforeAll(async () => {
    service = await ReplayedService.open([])
  })
  afterAll(() => service.close())

  for (const [at, step] of steps.entries()) {
    if (step.kind === 'pause') {
      test(`${at}: ${step.seconds} seconds pass`, () => service.pass(step.seconds))
    } else if (step.kind === 'service') {
      test(`${at}: a service with ${step.flags.join(' ')}`, async () => {
        await service.close()
        service = await ReplayedService.open(step.flags)
      })
    } else {
      const { request, reply } = step
      test(`${at}: ${request.method} ${request.path} is answered ${reply.status}`, async () => {
        const real = await service.send({
          ...request,
          path: likeness.translate(request.path),
          body: likeness.translate(request.body),
        })
        expect(real.status).toBe(reply.status)
        for (const [name, value] of reply.headers) expect(real.headers[name]).toBe(value)
        expect(likeness.differences(bodyOf(reply), bodyOf({ ...reply, body: real.body }))).toEqual([])
      })
    }
  }

  test('the document contains exchanges', () => {
    expect(steps.length).toBeGreaterThan(30)
  })
})

/** A manifest is a line of JSON for each partition; everything else is one document. */
function bodyOf({ headers, body }: ShownReply): unknown {
  if (body === '') return null
  const isLines = headers.some(([name, value]) => name === 'content-type' && value === 'application/x-ndjson')
  return isLines
    ? body
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line))
    : JSON.parse(body)
}
