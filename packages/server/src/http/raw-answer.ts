import type { FastifyReply } from 'fastify'

/**
 * Sends a JSON text past Fastify's reply, which has nothing to add to it: for the two answers that workers wait for
 * all day. Saves a tenth of the processor time of a pull and settle.
 */
export class RawAnswer {
  readonly #headers = ['content-type', 'application/json; charset=utf-8', 'cache-control', 'no-store']

  header(name: string, value: string): void {
    this.#headers.push(name, value)
  }

  send(reply: FastifyReply, body: string): void {
    const response = reply.hijack().raw
    this.header('content-length', String(Buffer.byteLength(body)))
    response.writeHead(200, this.#headers)
    response.end(body)
  }
}
