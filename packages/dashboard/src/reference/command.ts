import { baseUrl, token } from '../service/connection.ts'
import type { Operation, Parameter, Route } from './api-document.ts'

/** The operation as a curl command, with the URL of this service and the examples of the document. */
export function commandOf({ method, path, operation }: Route): string {
  const { parameters = [], requestBody } = operation
  const url = `${baseUrl.origin}${baseUrl.pathname.replace(/\/$/, '')}${filled(path, parameters)}`
  const query = parameters.filter((one) => one.in === 'query' && one.example !== undefined)
  const headers = parameters.filter((one) => one.in === 'header' && one.example !== undefined)
  const suffix = query.map(({ name, example }) => `${name}=${example}`).join('&')
  const target = suffix === '' ? url : `'${url}?${suffix}'`
  const lines = [`curl${method === 'GET' ? '' : ` -X ${method}`} ${target}`]
  if (token.value !== null && takesToken(operation)) lines.push("  -H 'Authorization: Bearer <token>'")
  for (const { name, example } of headers) lines.push(`  -H '${titled(name)}: ${example}'`)
  const [content] = Object.values(requestBody?.content ?? {})
  const body = Object.values(content?.examples ?? {})[0]?.value
  if (body !== undefined) {
    lines.push("  -H 'Content-Type: application/json'", `  -d '${JSON.stringify(body, null, 2)}'`)
  }
  return lines.join(' \\\n')
}

/** Health probes need no token. */
function takesToken({ responses }: Operation): boolean {
  return 'token_missing' in (responses['default']?.content?.['application/problem+json']?.examples ?? {})
}

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
