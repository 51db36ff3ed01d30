import type { ServerResponse } from 'node:http'
import { JSON_TYPE } from './service.ts'

/**
 * Sends a JSON text without Fastify's reply, which has nothing to add to it: for the two answers that workers wait
 * for all day.
 */
export class RawAnswer {
  readonly #headers = ['content-type', JSON_TYPE, 'cache-control', 'no-store']

  header(name: string, value: string): void {
    this.#headers.push(name, value)
  }

  send(response: ServerResponse, body: string): void {
    const bytes = Buffer.byteLength(body)
    this.header('content-length', String(bytes))
    response.writeHead(200, this.#headers)
    // ASCII is the same in both; as Latin-1 it is copied and not converted.
    response.end(body, bytes === body.length ? 'latin1' : 'utf8')
  }
}
