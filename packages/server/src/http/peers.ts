import type { IncomingMessage, Server, ServerResponse } from 'node:http'

/** The other nodes of the same service, and what they ask this one. */
export interface Peers {
  /** `verb` is what stands behind `/peer/` in the path. */
  serve(verb: string, request: IncomingMessage, response: ServerResponse): void
  /** This node takes nothing new: another one may take its place. */
  leave(): Promise<void>
}

/**
 * Lets other nodes in before everything else: they prove who they are by a signature, so neither the Host rule nor tokens
 * are for them, and a batch of requests should cost one request, not the hooks of Fastify beside it.
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
