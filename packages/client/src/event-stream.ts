import type { StreamEvent } from '@baton/protocol'
import { LONGEST_SILENCE_SECONDS } from '@baton/protocol/without-schemas'
import { UnreachableError } from './errors.ts'
import { pause } from './pause.ts'
import { backOffMillis } from './persistence.ts'
import { textLines } from './text-lines.ts'

const LONGEST_SILENCE_MILLIS = LONGEST_SILENCE_SECONDS * 1000

export type OpenEvents = (lastEventId: string | undefined) => Promise<ReadableStream<Uint8Array>>

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
