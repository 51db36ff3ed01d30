import type { ServerResponse } from 'node:http'
import { type EventName, eventSchemas, HEARTBEAT_SECONDS } from '@baton/protocol'
import type { FastifyInstance } from 'fastify'
import Type from 'typebox'
import type { StreamEvent, Tick } from '../../handoff/change-stream.ts'
import { SetsByKey } from '../../handoff/sets-by-key.ts'
import { tickWithinLimits } from '../admission/token-limits.ts'
import { securityHeaders } from '../answers/headers.ts'
import { presentInstance } from '../answers/instance-view.ts'
import { presentParked } from '../answers/partition-view.ts'
import { RequestProblem } from '../answers/problems.ts'
import { summariseTask } from '../answers/task-view.ts'
import { answers } from '../api-document/route-schemas.ts'
import type { ClientLimiter } from '../limits/limiter.ts'
import { excludeFromDurations } from '../observability/answered-requests.ts'
import { whenCrowded } from '../requests/pipelining.ts'
import type { RouteContext } from '../route-context.ts'

/** Each tick is serialized once for all watchers. */
const written = new WeakMap<Tick, Buffer>()

/**
 * A tick as server-sent events. Only the last event has the id: a client that loses its connection in the
 * middle of a tick resumes before it, and receives the whole tick again. A tick without events is sent as an
 * id alone, which clients store without dispatching an event.
 */
function tickText(tick: Tick): Buffer {
  let text = written.get(tick)
  if (text === undefined) {
    const events = tick.events.map(eventText)
    const last = events.pop() ?? '\n'
    text = Buffer.from(`${events.join('')}id: ${tick.id}\n${last}`)
    written.set(tick, text)
  }
  return text
}

function resetText(id: string): string {
  return `id: ${id}\n${eventText({ kind: 'reset' })}`
}

function eventText(event: StreamEvent): string {
  switch (event.kind) {
    case 'task':
      return named('task', summariseTask(event.row, event.now))
    case 'parked':
      return named('parked', presentParked(event.notice))
    case 'instance':
      return named('instance', presentInstance(event.instance))
    case 'reset':
      return named('reset', {})
  }
}

/** JSON text contains no raw line breaks, so it fits one data line. */
function named(name: EventName, data: object): string {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`
}

/** A watcher with more unread bytes than this receives no further ticks until it has caught up. */
const MOST_UNREAD_BYTES = 512 * 1024
/** A watcher that is behind for more than this many heartbeats is disconnected. */
const MOST_BEATS_BEHIND = 2

/** An open event stream. One that reads too slowly skips ticks, and then gets a `reset`: load all again. */
export class EventWatcher {
  readonly #response: ServerResponse
  #lastId = ''
  #isBehind = false
  #beatsBehind = 0

  constructor(response: ServerResponse) {
    this.#response = response
    response.on('drain', () => this.#caughtUp())
    // Node closes a broken connection; no response is possible.
    response.on('error', () => {})
  }

  send(tick: Tick): void {
    this.#lastId = tick.id
    if (this.#isBehind) return
    if (this.#response.writableLength > MOST_UNREAD_BYTES) this.#isBehind = true
    else this.#response.write(tickText(tick))
  }

  /** Sends a comment line, which shows both ends, and proxies between them, that the connection is alive. */
  beat(): void {
    if (!this.#isBehind) {
      this.#response.write(':\n\n')
      return
    }
    this.#beatsBehind += 1
    if (this.#beatsBehind > MOST_BEATS_BEHIND) this.#response.destroy()
  }

  end(): void {
    this.#response.end()
    // A client that does not read would prevent the node from closing.
    if (this.#isBehind) this.#response.destroy()
  }

  #caughtUp(): void {
    if (!this.#isBehind) return
    this.#isBehind = false
    this.#beatsBehind = 0
    this.#response.write(resetText(this.#lastId))
  }
}

/** A stream takes a connection and up to half a megabyte. Only a client that loops opens so many. */
export const MOST_STREAMS = 1000
/** Of one token or, without tokens, of one address. */
export const MOST_STREAMS_PER_CALLER = MOST_STREAMS / 4

/** The open event streams of this node. They share one heartbeat timer, which stops with the last stream. */
export class OpenStreams {
  readonly #watchers = new Set<EventWatcher>()
  readonly #byCaller = new SetsByKey<string, EventWatcher>()
  #heartbeat: NodeJS.Timeout | undefined

  /** Why the caller gets no further stream; undefined if it does. */
  refusal(caller: string): string | undefined {
    if (this.#watchers.size >= MOST_STREAMS) return `this node already has ${MOST_STREAMS} open event streams`
    if ((this.#byCaller.get(caller)?.size ?? 0) < MOST_STREAMS_PER_CALLER) return undefined
    return `the token (without tokens: the client address) already has ${MOST_STREAMS_PER_CALLER} open event streams`
  }

  add(watcher: EventWatcher, caller: string): void {
    this.#watchers.add(watcher)
    this.#byCaller.add(caller, watcher)
    this.#heartbeat ??= setInterval(() => this.#beat(), HEARTBEAT_SECONDS * 1000)
  }

  remove(watcher: EventWatcher, caller: string): void {
    this.#watchers.delete(watcher)
    this.#byCaller.remove(caller, watcher)
    if (this.#watchers.size > 0) return
    clearInterval(this.#heartbeat)
    this.#heartbeat = undefined
  }

  /** Ends all streams. They never end on their own, and closing would wait for them. */
  end(): void {
    for (const watcher of this.#watchers) watcher.end()
  }

  #beat(): void {
    for (const watcher of this.#watchers) watcher.beat()
  }
}

const LONGEST_EVENT_ID = 256
const RECONNECT_AFTER_MILLIS = 2000

const streamHead = (isSecure: boolean) => ({
  ...securityHeaders(isSecure),
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store',
  // Keeps nginx and similar proxies from buffering the stream.
  'x-accel-buffering': 'no',
})

export function eventsRoute(
  app: FastifyInstance,
  { handOff, tokens, isSecure }: RouteContext,
  streams: OpenStreams,
  limiter: Pick<ClientLimiter, 'quotaKeyOf'>,
): void {
  app.route({
    method: 'GET',
    url: '/events',
    config: { access: 'view', isStream: true },
    exposeHeadRoute: false,
    schema: {
      operationId: 'followEvents',
      summary: 'Follow changes as server-sent events',
      description:
        'An event has the current state of a task and is sent at most a few times per second. The stream begins with ' +
        'an `id` without an event; later events have their own ids. A client that reconnects with the last id in ' +
        'Last-Event-ID receives the events that it missed. If the service no longer has them, it sends `reset`, and ' +
        'the client must read everything again. A client that reads too slowly also receives `reset`, instead of ' +
        'the events that it did not read.',
      tags: ['tasks'],
      headers: Type.Object({
        'last-event-id': Type.Optional(
          Type.String({
            maxLength: LONGEST_EVENT_ID,
            description: 'The last id that was received, with or without an event',
          }),
        ),
      }),
      response: answers(
        streamSchema,
        'An endless stream of events; the data of each event is JSON',
        'text/event-stream',
      ),
    },
    handler: async (request, reply) => {
      if (handOff.isDraining) {
        throw new RequestProblem('shutting_down', 'this node is shutting down and sends no more events')
      }
      const { socket, headers } = request.raw
      const caller = limiter.quotaKeyOf(headers, socket)
      const refusal = streams.refusal(caller)
      if (refusal !== undefined) throw new RequestProblem('overloaded', refusal)
      const lastId = request.headers['last-event-id']
      const token = tokens.of(headers)
      excludeFromDurations(reply)
      reply.hijack()
      const response = reply.raw
      response.writeHead(200, streamHead(isSecure))
      const watcher = new EventWatcher(response)
      streams.add(watcher, caller)
      const stopEvents = handOff.changeStream.watch(knownId(lastId), (tick) =>
        watcher.send(token === null ? tick : tickWithinLimits(token, tick)),
      )
      const unwatch = tokens.watch(headers, () => watcher.end())
      const hungUp = () => response.destroy()
      const stopWatchingCrowd = whenCrowded(socket, () => watcher.end())
      socket.once('end', hungUp)
      response.once('close', () => {
        socket.off('end', hungUp)
        stopWatchingCrowd()
        stopEvents()
        unwatch()
        streams.remove(watcher, caller)
      })
      // A client that sees the stream open expects to receive everything that happens from then on.
      await handOff.changeStream.begun()
      // Meanwhile the client may have disconnected, or the node may be shutting down.
      if (!response.writableEnded && !response.destroyed)
        response.write(`retry: ${RECONNECT_AFTER_MILLIS}\n\n`)
    },
  })
}

/** JSON Schema can describe the data of an event, but not the lines around it. */
const streamSchema = Type.Unsafe<string>({
  type: 'string',
  description: 'Lines of `id`, `event` and `data`. x-events has the schema of the data for each event name.',
  'x-events': eventSchemas,
  examples: ['id: cf7b5e94-2\nevent: task\ndata: {"taskId":"orders-2026-03","state":"open", …}\n\n'],
})

function knownId(lastId: string | string[] | undefined): string | null {
  return typeof lastId === 'string' && lastId !== '' && lastId.length <= LONGEST_EVENT_ID ? lastId : null
}
