import { BatonClient } from '@baton/client'
import { LONGEST_SILENCE_SECONDS } from '@baton/protocol'
import { expect, onTestFinished, test, vi } from 'vitest'
import { until } from '../../../test/support/until.ts'
import { descriptors } from './support/descriptors.ts'
import { startService } from './support/service.ts'

test('a stream that breaks before its first event reports missed events', async () => {
  const service = await startService()
  let streams = 0
  const client = new BatonClient({
    url: service.url,
    fetch: async (input, init) => {
      const response = await fetch(input, init)
      if (!String(input).endsWith('/events')) return response
      streams += 1
      return streams === 1
        ? cutAfterOpening(response, () => client.callBack(descriptors('missed', 1)))
        : response
    },
  })
  for await (const event of client.events()) {
    // No other client was connected meanwhile, so the service only knows that there may have been missed
    // events.
    expect(event.name === 'task' ? event.data.taskId : event.name).toBe('reset')
    break
  }
  expect(streams).toBe(2)
})

test('a stream that misses its heartbeats is opened again', async () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const fetch = vi.fn(async () => new Response(new ReadableStream()))
  const client = new BatonClient({ url: 'http://127.0.0.1:2', fetch })
  const controller = new AbortController()
  const following = client.events({ signal: controller.signal }).next()
  await vi.advanceTimersByTimeAsync(LONGEST_SILENCE_SECONDS * 1000 - 1)
  expect(fetch).toHaveBeenCalledTimes(1)
  // The pause before reconnecting is short.
  await vi.advanceTimersByTimeAsync(1000)
  expect(fetch).toHaveBeenCalledTimes(2)
  controller.abort(new Error('enough'))
  await expect(following).rejects.toThrow('enough')
})

/**
 * What a connection receives before the first event; then something changes while no client is connected, and
 * it breaks.
 */
function cutAfterOpening(response: Response, meanwhile: () => Promise<unknown>): Response {
  const cut = new ReadableStream<Uint8Array>({
    start: async (controller) => {
      const opening = await openingOf(response)
      controller.enqueue(new TextEncoder().encode(opening))
      await forgotten(response.url, /^id: (.+)$/m.exec(opening)?.[1] ?? '')
      await meanwhile()
      controller.close()
    },
  })
  return new Response(cut, response)
}

/**
 * A node without event clients drops its events at the next tick; a client that reconnects is notified of
 * that.
 */
async function forgotten(url: string, id: string): Promise<void> {
  await until(async () => {
    const opening = await openingOf(await fetch(url, { headers: { 'last-event-id': id } }))
    return opening.includes('event: reset')
  })
}

/** What a stream sends to a new client before it disconnects. */
async function openingOf(response: Response): Promise<string> {
  let opening = ''
  for await (const text of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    opening += text
    if (opening.includes('retry:')) break
  }
  return opening
}
