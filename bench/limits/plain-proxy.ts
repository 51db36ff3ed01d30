import { createServer, type IncomingMessage } from 'node:http'
import { Agent, request } from 'undici'

/**
 * The upper limit for a node that forwards: passes each request on, with its whole body, and checks, signs and
 * counts nothing. What a second node costs beyond it is Baton's own work.
 */
const [target = ''] = process.argv.slice(2)
const dispatcher = new Agent({ connections: null })

async function bodyOf(incoming: IncomingMessage): Promise<Buffer | null> {
  const chunks: Buffer[] = []
  for await (const chunk of incoming) chunks.push(chunk as Buffer)
  return chunks.length === 0 ? null : Buffer.concat(chunks)
}

const server = createServer(async (incoming, answer) => {
  const { connection, host, 'content-length': length, ...headers } = incoming.headers
  const method = incoming.method === 'POST' ? 'POST' : 'GET'
  const body = await bodyOf(incoming)
  const answered = await request(`${target}${incoming.url}`, { method, headers, body, dispatcher })
  const answerBody = Buffer.from(await answered.body.arrayBuffer())
  const type = `${answered.headers['content-type']}`
  answer.writeHead(answered.statusCode, { 'content-type': type, 'content-length': answerBody.length })
  answer.end(answerBody)
})

server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the proxy has no port')
  process.stdout.write(`plain proxy at http://127.0.0.1:${address.port}\n`)
})
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => process.exit(0))
