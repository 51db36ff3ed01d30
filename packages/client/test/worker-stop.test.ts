import { Worker } from '@baton/client'
import { describe, expect, test } from 'vitest'
import { startService } from './support/service.ts'

describe('a worker that stops', () => {
  test('stops by an abort signal, at the end of a block, and only once', async () => {
    const { url } = await startService()
    const controller = new AbortController()
    const byItsSignal = new Worker(url, () => {}, { signal: controller.signal })
    const run = byItsSignal.run()
    controller.abort()
    await run
    const events: string[] = []
    {
      await using _worker = new Worker(url, () => {}, { onEvent: ({ kind }) => events.push(kind) }).start()
    }
    expect(events.filter((kind) => kind === 'stopped')).toHaveLength(1)
    const neverStarted = new Worker(url, () => {}, { signal: AbortSignal.abort() })
    await neverStarted.run()
    await neverStarted.stop()
  })
})
