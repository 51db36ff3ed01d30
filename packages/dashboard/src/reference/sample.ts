import type { Parameter, Route } from './api-document.ts'

/** A request that works when it is sent as it is. */
export interface Sample {
  readonly method: string
  readonly url: string
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: string | undefined
}

/** The name of the sender has no effect but to list it; other optional parameters change what happens. */
const isSampled = ({ name, required }: Parameter) => required === true || name === 'x-instance-id'

/** `base` has no trailing slash. */
export function sampleOf({ method, path, operation }: Route, base: string): Sample {
  const { parameters = [], requestBody } = operation
  const sampled = parameters.filter((one) => isSampled(one) && one.example !== undefined)
  const query = sampled.filter((one) => one.in === 'query').map(({ name, example }) => `${name}=${example}`)
  const [content] = Object.values(requestBody?.content ?? {})
  const body = Object.values(content?.examples ?? {})[0]?.value
  const headers = sampled
    .filter((one) => one.in === 'header')
    .map(({ name, example }) => [titled(name), String(example)] as const)
  return {
    method,
    url: `${base}${filled(path, parameters)}${query.length === 0 ? '' : `?${query.join('&')}`}`,
    headers: body === undefined ? headers : [...headers, ['Content-Type', 'application/json']],
    body: body === undefined ? undefined : JSON.stringify(body, null, 2),
  }
}

/** The request as a command for a shell. */
export function commandOf({ method, url, headers, body }: Sample): string {
  const lines = [`curl${method === 'GET' ? '' : ` -X ${method}`} ${url.includes('?') ? quoted(url) : url}`]
  for (const [name, value] of headers) lines.push(`  -H ${quoted(`${name}: ${value}`)}`)
  if (body !== undefined) lines.push(`  -d ${quoted(body)}`)
  return lines.join(' \\\n')
}

const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`

function filled(path: string, parameters: readonly Parameter[]): string {
  return path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const example = parameters.find((one) => one.in === 'path' && one.name === name)?.example
    return encodeURIComponent(String(example ?? 'orders-2026-03'))
  })
}

/** A header name in its usual case. HTTP ignores the case. */
export function titled(header: string): string {
  return header.replaceAll(/(^|-)([a-z])/g, (_, dash: string, letter: string) => dash + letter.toUpperCase())
}
