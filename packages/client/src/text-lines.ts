import { UnreachableError } from './errors.ts'
import { timer } from './timer.ts'

export interface TextLinesOptions {
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
