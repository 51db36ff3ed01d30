import { fencesOf } from './markdown.ts'

/**
 * Reads the `http` code blocks of a document as a conversation. HTML comments between them, which the
 * rendered page does not show, describe other events: `<!-- 300 seconds pass -->`, `<!-- a service with
 * --some flags -->`.
 */
export type Step =
  | { readonly kind: 'service'; readonly flags: readonly string[] }
  | { readonly kind: 'pause'; readonly seconds: number }
  | { readonly kind: 'exchange'; readonly request: ShownRequest; readonly reply: ShownReply }

export interface ShownRequest {
  readonly method: string
  readonly path: string
  readonly headers: readonly (readonly [string, string])[]
  readonly body: string
}

export interface ShownReply {
  readonly status: number
  readonly headers: readonly (readonly [string, string])[]
  readonly body: string
}

export function readTranscript(document: string): Step[] {
  const steps: Step[] = []
  let asked: ShownRequest | undefined
  for (const [block] of document.matchAll(/^```http\n[\s\S]*?^```$|^<!-- [^\n]* -->$/gm)) {
    const step = block.startsWith('<!--') ? readComment(block) : undefined
    if (step !== undefined) steps.push(step)
    if (block.startsWith('<!--')) continue
    const { line, headers, body } = readMessage(fencesOf(block)[0]?.text ?? '')
    const status = /^HTTP\/1\.1 (\d{3})/.exec(line)?.[1]
    if (status === undefined) {
      if (asked !== undefined) throw new Error(`no reply is shown to ${asked.method} ${asked.path}`)
      const [method = '', path = ''] = line.split(' ')
      asked = { method, path, headers, body }
    } else {
      if (asked === undefined) throw new Error(`a reply without a request: ${line}`)
      steps.push({ kind: 'exchange', request: asked, reply: { status: Number(status), headers, body } })
      asked = undefined
    }
  }
  return steps
}

function readComment(comment: string): Step | undefined {
  const seconds = /^<!-- (\d+) seconds pass -->$/.exec(comment)?.[1]
  if (seconds !== undefined) return { kind: 'pause', seconds: Number(seconds) }
  const flags = /^<!-- a service(?: with (.+))? -->$/.exec(comment)
  return flags === null ? undefined : { kind: 'service', flags: flags[1]?.split(' ') ?? [] }
}

function readMessage(text: string) {
  const [head = '', ...rest] = text.split('\n\n')
  const [line = '', ...headerLines] = head.trimEnd().split('\n')
  const headers = headerLines.map((header) => {
    const colon = header.indexOf(':')
    return [header.slice(0, colon).toLowerCase(), header.slice(colon + 1).trim()] as const
  })
  return { line, headers, body: rest.join('\n\n').trim() }
}
