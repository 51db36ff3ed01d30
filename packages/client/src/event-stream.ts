import type { StreamEvent } from '@baton/protocol'
import { readEvents, StreamBroken, textLines } from '@baton/protocol/core'
import { UnreachableError } from './errors.ts'
import { backOffMillis, pause } from './persistence.ts'

/** The lines of an answer; one that breaks off is an unreachable service. */
export async function* answerLines(
  body: ReadableStream<Uint8Array>,
  signal?: AbortSignal,
): AsyncGenerator<string, void, undefined> {
  try {
    yield* textLines(body, { signal })
  } catch (error) {
    if (!(error instanceof StreamBroken)) throw error
    throw new UnreachableError(error.message, { cause: error.cause })
  }
}

type OpenEvents = (lastEventId: string | undefined) => Promise<ReadableStream<Uint8Array>>

/** Follows events until the signal ends it: a connection that ends is opened again where it ended. */
export async function* followEvents(
  open: OpenEvents,
  signal?: AbortSignal,
): AsyncGenerator<StreamEvent, void, undefined> {
  let lastEventId: string | undefined
  while (true) {
    try {
      for await (const { id, event } of readEvents(await open(lastEventId), signal)) {
        lastEventId = id ?? lastEventId
        if (event !== undefined) yield event
      }
    } catch (error) {
      // Opening has retried already; a stream that breaks off is opened again.
      const isAway = error instanceof UnreachableError || error instanceof StreamBroken
      if (!isAway || signal?.aborted) throw error
    }
    await pause(backOffMillis(1), signal)
  }
}
