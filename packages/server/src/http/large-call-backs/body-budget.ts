import type { FastifyReply, FastifyRequest } from 'fastify'
import { sendProblem } from '../answers/problems.ts'

/** So many call-backs of the largest size may be under way at once. */
const LARGEST_AT_ONCE = 8
/** Smaller bodies are not worth the counting. */
const COUNTED_FROM_BYTES = 65_536

export const TOO_MANY_LARGE = 'too many large call-backs are being received at once; send this one again'

/**
 * Keeps the call-backs that are being received within what the process can hold. Whoever comes beyond that is told
 * to come again, before a byte of the body is read.
 */
export function bodyBudget(largestBytes: number) {
  let left = LARGEST_AT_ONCE * largestBytes

  const release = (request: FastifyRequest, reply: FastifyReply, bytes: number) => {
    const { socket } = request.raw
    const giveBack = () => {
      left += bytes
      reply.raw.off('finish', giveBack)
      socket.off('close', giveBack)
    }
    // An answer may never finish, and a connection may outlive many answers: whichever ends first.
    reply.raw.once('finish', giveBack)
    socket.once('close', giveBack)
  }

  return (request: FastifyRequest, reply: FastifyReply, done: () => void): void => {
    const bytes = announcedBytes(request, largestBytes)
    if (bytes < COUNTED_FROM_BYTES) {
      done()
      return
    }
    if (bytes > left) {
      request.raw.resume()
      sendProblem(reply, { code: 'overloaded', detail: TOO_MANY_LARGE })
      return
    }
    left -= bytes
    release(request, reply, bytes)
    done()
  }
}

/** A body in chunks may become as large as is allowed; one that is too large is refused without being read. */
function announcedBytes({ headers }: FastifyRequest, largestBytes: number): number {
  if (headers['transfer-encoding'] !== undefined) return largestBytes
  const bytes = Number(headers['content-length'] ?? 0)
  return bytes > largestBytes ? 0 : bytes
}
