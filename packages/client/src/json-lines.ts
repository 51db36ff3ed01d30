import { UnreachableError } from './errors.ts'

/** The documents of an NDJSON body, one by one, however it is cut into chunks. */
export async function* readLines(
  body: ReadableStream<Uint8Array>,
  signal?: AbortSignal,
): AsyncGenerator<unknown, void, undefined> {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  const interrupt = () => void reader.cancel(signal?.reason).catch(() => {})
  signal?.addEventListener('abort', interrupt, { once: true })
  let rest = ''
  try {
    while (true) {
      const { done, value } = await nextChunk(reader)
      signal?.throwIfAborted()
      const lines = (rest + decoder.decode(value, { stream: !done })).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) if (line !== '') yield JSON.parse(line)
      if (done) break
    }
    if (rest !== '') yield JSON.parse(rest)
  } finally {
    signal?.removeEventListener('abort', interrupt)
    // Whoever leaves early must not leave the connection behind.
    await reader.cancel().catch(() => {})
  }
}

async function nextChunk(reader: ReadableStreamDefaultReader<Uint8Array>) {
  try {
    return await reader.read()
  } catch (error) {
    throw new UnreachableError('the answer broke off in the middle', { cause: error })
  }
}
