/** Baton's requests as bytes on the wire, built once per client where nothing varies. */

export interface PullPreferences {
  batch?: number
  waitSeconds?: number
}

/** The path of a pull that names these tables. */
export const pathOfPull = (tables: readonly string[]): string =>
  `/pull?${tables.map((table) => `table=${encodeURIComponent(table)}`).join('&')}`

function head(method: string, path: string, url: string, headers: Readonly<Record<string, string>>): string {
  let text = `${method} ${path} HTTP/1.1\r\nHost: ${new URL(url).host}\r\n`
  for (const [name, value] of Object.entries(headers)) text += `${name}: ${value}\r\n`
  return text
}

function preferHeader({ batch, waitSeconds }: PullPreferences): Record<string, string> {
  const preferences: string[] = []
  if (batch !== undefined) preferences.push(`batch=${batch}`)
  if (waitSeconds !== undefined) preferences.push(`wait=${waitSeconds}`)
  return preferences.length === 0 ? {} : { Prefer: preferences.join(', ') }
}

export function pullRequest(
  url: string,
  instanceId: string,
  preferences: PullPreferences = {},
  path = '/pull',
): string {
  return `${head('GET', path, url, { 'X-Instance-Id': instanceId, ...preferHeader(preferences) })}\r\n`
}

/** The head of a pull without its last line: the caller adds a new Idempotency-Key each time. */
export function pullRequestForKey(url: string, instanceId: string): (key: string) => string {
  const start = head('GET', '/pull', url, { 'X-Instance-Id': instanceId })
  return (key) => `${start}Idempotency-Key: "${key}"\r\n\r\n`
}

export function settleRequest(
  url: string,
  instanceId: string,
  preferences: PullPreferences = {},
): (leaseIds: readonly string[]) => string {
  const start = head('POST', '/settle', url, {
    'X-Instance-Id': instanceId,
    'Content-Type': 'application/json',
    ...preferHeader(preferences),
  })
  return (leaseIds) => {
    let body = '['
    for (const id of leaseIds) body += `${body.length > 1 ? ',' : ''}{"leaseId":"${id}","outcome":"done"}`
    body += ']'
    return `${start}Content-Length: ${body.length}\r\n\r\n${body}`
  }
}

export function renewRequest(url: string, instanceId: string): (leaseIds: readonly string[]) => string {
  const start = head('POST', '/renew', url, {
    'X-Instance-Id': instanceId,
    'Content-Type': 'application/json',
  })
  return (leaseIds) => {
    const body = JSON.stringify(leaseIds)
    return `${start}Content-Length: ${body.length}\r\n\r\n${body}`
  }
}

export function callBackRequest(url: string, body: string): Buffer {
  const headers = { 'Content-Type': 'application/json', Accept: '*/*', 'Cache-Control': 'no-cache' }
  return Buffer.from(
    `${head('POST', '/call-back', url, headers)}Content-Length: ${body.length}\r\n\r\n${body}`,
    'latin1',
  )
}

/** A control request for a task: pause, resume or cancel. */
export function orderRequest(url: string, taskId: string, order: string): string {
  return `${head('POST', `/tasks/${taskId}/${order}`, url, {})}Content-Length: 0\r\n\r\n`
}

export function getRequest(url: string, path: string): string {
  return `${head('GET', path, url, {})}\r\n`
}

/** Found without parsing, like `leaseIds`. */
export function nothingRefused(settleAnswer: string): boolean {
  return settleAnswer.includes('"refused":[]')
}

/**
 * The lease ids in the answer to a pull or settle. `"id"` occurs nowhere else in it, and searching for it is
 * much cheaper than parsing. The client's processor time is missing from the server.
 */
export function leaseIds(body: string): string[] {
  const ids: string[] = []
  for (let at = body.indexOf('"id":"'); at !== -1; at = body.indexOf('"id":"', at + 6)) {
    ids.push(body.slice(at + 6, body.indexOf('"', at + 6)))
  }
  return ids
}
