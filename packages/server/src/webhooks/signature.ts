import { createHmac, randomBytes } from 'node:crypto'

// Standard Webhooks: https://www.standardwebhooks.com

const PREFIX = 'whsec_'
const SECRET_BYTES = 32
const SHORTEST_BYTES = 24
const LONGEST_BYTES = 64

export const newSigningSecret = (): string => `${PREFIX}${randomBytes(SECRET_BYTES).toString('base64')}`

/** Undefined if the secret is not in the format of Standard Webhooks. */
function keyOf(secret: string): Buffer | undefined {
  if (!secret.startsWith(PREFIX)) return undefined
  const text = secret.slice(PREFIX.length)
  const key = Buffer.from(text, 'base64')
  const isSame = key.toString('base64').replace(/=+$/, '') === text.replace(/=+$/, '')
  return isSame && key.length >= SHORTEST_BYTES && key.length <= LONGEST_BYTES ? key : undefined
}

export const isSigningSecret = (secret: string): boolean => keyOf(secret) !== undefined

export interface Signed {
  readonly id: string
  /** In seconds since the epoch. */
  readonly timestamp: number
  readonly body: string
}

/** The value of `webhook-signature`: one signature per secret, so that receivers can rotate theirs. */
export function signatureOf(secrets: readonly string[], { id, timestamp, body }: Signed): string {
  const signatures = secrets.flatMap((secret) => {
    const key = keyOf(secret)
    return key === undefined ? [] : [createHmac('sha256', key).update(`${id}.${timestamp}.${body}`)]
  })
  return signatures.map((hmac) => `v1,${hmac.digest('base64')}`).join(' ')
}
