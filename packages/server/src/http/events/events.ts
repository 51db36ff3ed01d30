import { eventSchemas } from '@baton/protocol'
import type { FastifyInstance } from 'fastify'
import Type from 'typebox'
import { tickWithinLimits } from '../admission/reach.ts'
import { RequestProblem } from '../answers/problems.ts'
import { securityHeaders } from '../answers/security-headers.ts'
import { problemAnswers } from '../api-document/documented.ts'
import { excludeFromDurations } from '../requests/request-counts.ts'
import { whenCrowded } from '../requests/sent-ahead.ts'
import type { Service } from '../service.ts'
import { EventFollower, MOST_STREAMS, type OpenStreams } from './event-streams.ts'

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
  { handOff, callers, isSecure }: Service,
  streams: OpenStreams,
): void {
  app.route({
    method: 'GET',
    url: '/events',
    config: { access: 'view' },
    exposeHeadRoute: false,
    schema: {
      operationId: 'followEvents',
      summary: 'Follow what happens, as server-sent events',
      description:
        'An event has the present state of a task, at most a few times a second. The stream begins with an `id` without an ' +
        'event, and later events bring others. A client that reconnects with the last of them in Last-Event-ID ' +
        'hears what it missed, or `reset` when that is no longer known: it then reads everything again. A client ' +
        'that reads too slowly also gets a `reset`, in place of what it left waiting.',
      tags: ['tasks'],
      headers: Type.Object({
        'last-event-id': Type.Optional(
          Type.String({
            maxLength: LONGEST_EVENT_ID,
            description: 'The last id that was received, with an event or without',
          }),
        ),
      }),
      response: {
        200: {
          description: 'Events without end; the data of each is JSON',
          content: { 'text/event-stream': { schema: streamSchema } },
        },
        ...problemAnswers,
      },
    },
    handler: async (request, reply) => {
      if (handOff.isDraining) {
        throw new RequestProblem('shutting_down', 'this node is shutting down and sends no more events')
      }
      if (streams.isFull) {
        throw new RequestProblem('overloaded', `${MOST_STREAMS} event streams are open on this node already`)
      }
      const lastId = request.headers['last-event-id']
      const { socket, headers } = request.raw
      const caller = callers.of(headers)
      excludeFromDurations(reply)
      reply.hijack()
      const response = reply.raw
      response.writeHead(200, streamHead(isSecure))
      const follower = new EventFollower(response)
      streams.add(follower)
      const unfollow = handOff.events.follow(knownId(lastId), (tick) =>
        follower.tell(caller === null ? tick : tickWithinLimits(caller, tick)),
      )
      const unwatch = callers.watch(headers, () => follower.end())
      const hungUp = () => response.destroy()
      const stopWatchingCrowd = whenCrowded(socket, () => follower.end())
      socket.once('end', hungUp)
      response.once('close', () => {
        socket.off('end', hungUp)
        stopWatchingCrowd()
        unfollow()
        unwatch()
        streams.remove(follower)
      })
      // A client that sees the stream open expects to receive everything that happens from then on.
      await handOff.events.begun()
      // Meanwhile the client may have disconnected, or the node may be shutting down.
      if (!response.writableEnded && !response.destroyed)
        response.write(`retry: ${RECONNECT_AFTER_MILLIS}\n\n`)
    },
  })
}

/** JSON Schema can describe the data of an event, but not the lines around it. */
const streamSchema = Type.Unsafe<string>({
  type: 'string',
  description: 'Lines of `id`, `event` and `data`. The data of an event, by its name, is as in x-events.',
  'x-events': eventSchemas,
})

function knownId(lastId: string | string[] | undefined): string | null {
  return typeof lastId === 'string' && lastId !== '' && lastId.length <= LONGEST_EVENT_ID ? lastId : null
}
