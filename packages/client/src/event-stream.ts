import type { StreamEvent } from '@baton/protocol'
import { LONGEST_SILENCE_SECONDS } from '@baton/protocol/core'
import { UnreachableError } from './errors.ts'
import { backOffMillis, pause, timer } from './persistence.ts'

interface TextLinesOptions {
  readonly signal?: AbortSignal | undefined
  /** Nothing for so long means that the connection is gone, although nobody said so. */
  readonly longestSilenceMillis?: number
}

/** The lines of a body, one by one, however it is cut into chunks. What has no line break at the end is a line too. */
export async function* textLines(
  body: ReadableStream<Uint8Array>,
  { signal, longestSilenceMillis = Number.POSITIVE_INFINITY }: TextLinesOptions = {},
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
    // Whoever leaves early must not leave the connection behind.
    await reader.cancel().catch(() => {})
  }
}

async function nextChunk(reader: ReadableStreamDefaultReader<Uint8Array>, longestSilenceMillis: number) {
  const silence = Promise.withResolvers<never>()
  const running = timer(() => silence.reject(new Error('nothing came for too long')), longestSilenceMillis)
  try {
    return await Promise.race([reader.read(), silence.promise])
  } catch (error) {
    throw new UnreachableError('the answer broke off in the middle', { cause: error })
  } finally {
    clearTimeout(running)
  }
}

const LONGEST_SILENCE_MILLIS = LONGEST_SILENCE_SECONDS * 1000

type OpenEvents = (lastEventId: string | undefined) => Promise<ReadableStream<Uint8Array>>

/** Follows events for ever: a connection that ends is opened anew where it ended. */
export async function* followEvents(
  open: OpenEvents,
  signal?: AbortSignal,
): AsyncGenerator<StreamEvent, void, undefined> {
  let lastEventId: string | undefined
  while (true) {
    try {
      const body = await open(lastEventId)
      for await (const { id, event } of eventsOf(body, signal)) {
        lastEventId = id ?? lastEventId
        if (event !== undefined) yield event
      }
    } catch (error) {
      // Opening was persisted with already; what breaks in the middle begins again.
      if (!(error instanceof UnreachableError) || signal?.aborted) throw error
    }
    await pause(backOffMillis(1), signal)
  }
}

interface ReceivedEvent {
  readonly id: string | undefined
  readonly event: StreamEvent | undefined
}

/** The parts of server-sent events that the service uses: id, event, one line of data, and comments. */
async function* eventsOf(
  body: ReadableStream<Uint8Array>,
  signal?: AbortSignal,
): AsyncGenerator<ReceivedEvent> {
  let fields: Record<string, string> = {}
  for await (const line of textLines(body, { signal, longestSilenceMillis: LONGEST_SILENCE_MILLIS })) {
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
