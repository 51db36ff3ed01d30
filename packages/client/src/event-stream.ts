import type { StreamEvent } from '@baton/protocol'
import { LONGEST_SILENCE_SECONDS } from '@baton/protocol/core'
import { UnreachableError } from './errors.ts'
import { backOffMillis, pause } from './retry.ts'

interface TextLinesOptions {
  readonly signal?: AbortSignal | undefined
  /** The connection counts as broken after this much silence. */
  readonly longestSilenceMillis?: number
}

/** Splits a body into lines, independently of its chunks. A last line without a line break counts. */
export async function* textLines(
  body: ReadableStream<Uint8Array>,
  { signal, longestSilenceMillis }: TextLinesOptions = {},
): AsyncGenerator<string, void, undefined> {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  const interrupt = () => void reader.cancel(signal?.reason).catch(() => {})
  signal?.addEventListener('abort', interrupt, { once: true })
  let rest = ''
  try {
    while (true) {
      const { done, value } = await nextChunk(reader, longestSilenceMillis)
      signal?.throwIfAborted()
      const lines = (rest + decoder.decode(value, { stream: !done })).split('\n')
      rest = lines.pop() ?? ''
      yield* lines
      if (done) break
    }
    if (rest !== '') yield rest
  } finally {
    signal?.removeEventListener('abort', interrupt)
    // If the caller stops iterating early, close the connection.
    await reader.cancel().catch(() => {})
  }
}

async function nextChunk(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  longestSilenceMillis: number | undefined,
) {
  let timer: ReturnType<typeof setTimeout> | undefined
  const silence = new Promise<never>((_, reject) => {
    if (longestSilenceMillis === undefined) return
    timer = setTimeout(
      () => reject(new Error('the event stream sent nothing for too long')),
      longestSilenceMillis,
    )
  })
  try {
    return await Promise.race([reader.read(), silence])
  } catch (error) {
    throw new UnreachableError('the response ended before it was complete', { cause: error })
  } finally {
    clearTimeout(timer)
  }
}

interface ReceivedEvent {
  readonly id: string | undefined
  /** Undefined for a block without data, for example a block that contains only an id. */
  readonly event: StreamEvent | undefined
}

/**
 * Parses the subset of server-sent events that the service uses: id, event, one line of data, and comments.
 */
export async function* readEvents(
  body: ReadableStream<Uint8Array>,
  signal?: AbortSignal,
): AsyncGenerator<ReceivedEvent, void, undefined> {
  let fields: Record<string, string> = {}
  const longestSilenceMillis = LONGEST_SILENCE_SECONDS * 1000
  for await (const line of textLines(body, { signal, longestSilenceMillis })) {
    if (line !== '') {
      const [, name = '', value = ''] = /^([a-z]*): ?(.*)$/s.exec(line) ?? []
      if (name !== '') fields[name] = value
      continue
    }
    const { id, event: name, data } = fields
    const event = name === undefined || data === undefined ? undefined : { name, data: JSON.parse(data) }
    yield { id, event: event as StreamEvent | undefined }
    fields = {}
  }
}

type OpenEvents = (lastEventId: string | undefined) => Promise<ReadableStream<Uint8Array>>

/** Yields events until the signal is aborted. Reconnects from the last event when the connection ends. */
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
      // Opening the stream has its own retries. Here, only a stream that broke is reopened.
      if (!(error instanceof UnreachableError) || signal?.aborted) throw error
    }
    await pause(backOffMillis(1), signal)
  }
}
