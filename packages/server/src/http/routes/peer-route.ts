import type { IncomingMessage, Server, ServerResponse } from 'node:http'

/** The interface to the other nodes of the same service. */
export interface Peers {
  /** Serves a request of another node. `verb` is the part of the path after `/peer/`. */
  serve(verb: string, request: IncomingMessage, response: ServerResponse): void
  /** Called when this node drains: it gives up leadership if another node can take over. */
  leave(): Promise<void>
}

/**
 * Routes requests of other nodes before Fastify sees them. Nodes authenticate by a signature, so the Host
 * rule and tokens do not apply. A peer request carries a batch of requests, and should not pay for Fastify's
 * hooks.
 */
export function admitPeers(server: Server, basePath: string, peers: Peers): void {
  const prefix = `${basePath}/peer/`
  const others = server.listeners('request') as ((
    request: IncomingMessage,
    response: ServerResponse,
  ) => void)[]
  server.removeAllListeners('request')
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const { url = '' } = request
    if (url.startsWith(prefix)) peers.serve(url.slice(prefix.length), request, response)
    else for (const serve of others) serve.call(server, request, response)
  })
}
