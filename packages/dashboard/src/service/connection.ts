import { BatonClient, ProblemError, UnreachableError } from '@baton/client'
import type { Whoami } from '@baton/protocol'
import { batch, computed, signal } from '@preact/signals'

const TOKEN_KEY = 'baton-token'
/** A user is waiting, so report soon that the service is unreachable. */
const RETRY_FOR_SECONDS = 3

/** The page is served at the service's base URL, which may have a path. */
export const baseUrl = new URL('.', location.href)

const storedToken = signal(sessionStorage.getItem(TOKEN_KEY))

/** Why a token is needed: none was sent, it is unknown, or its role does not allow reading. */
export type TokenWant = 'missing' | 'unknown' | 'refused'

/** Who the service sees, and with which roles. Null until it has said so. */
export const session = signal<Whoami | null>(null)

/** False if the role allows no actions. Actions are then hidden. */
export const mayControl = computed(() => session.value?.roles.includes('operator') ?? false)

export const tokenWanted = signal<'no' | TokenWant>('no')

const wantOfCode: Readonly<Record<string, TokenWant>> = {
  token_missing: 'missing',
  token_unknown: 'unknown',
  token_refused: 'refused',
}

/** The token of the last request that was refused because of its token. */
let lastRefused: string | null = null

export const client = computed(() => {
  const bearer = storedToken.value
  return clientWith(bearer, async (input, init) => {
    const response = await fetch(input, init)
    if (response.status === 401 || response.status === 403) lastRefused = bearer
    return response
  })
})

export const token = computed(() => storedToken.value)

/** A client with a token that is not stored yet. */
export function clientWith(bearer: string | null, send?: typeof fetch): BatonClient {
  return new BatonClient({
    url: baseUrl,
    retryForSeconds: RETRY_FOR_SECONDS,
    ...(send === undefined ? {} : { fetch: send }),
    ...(bearer === null ? {} : { token: bearer }),
  })
}

/** Stores the token for this tab, until it is closed. */
export function keepToken(text: string): void {
  sessionStorage.setItem(TOKEN_KEY, text)
  batch(() => {
    storedToken.value = text
    tokenWanted.value = 'no'
  })
}

/** Signs out: removes the token. The page then prompts for another. */
export function forgetToken(): void {
  sessionStorage.removeItem(TOKEN_KEY)
  batch(() => {
    storedToken.value = null
    session.value = null
    tokenWanted.value = 'missing'
  })
}

/**
 * Checks whether a read failed because of the token, and if so shows the token form. Returns whether it did. An
 * answer to a request with an earlier token says nothing about the present one.
 */
export function noteRefusal(error: unknown): boolean {
  if (!(error instanceof ProblemError)) return false
  const isOfEarlierToken = wantOfCode[error.code] !== undefined && lastRefused !== storedToken.peek()
  return isOfEarlierToken || noteRefusalCode(error.code)
}

export function noteRefusalCode(code: string): boolean {
  const want = wantOfCode[code]
  if (want === undefined) return false
  tokenWanted.value = want
  return true
}

/**
 * An action may require another role than reading. If only the role is insufficient, the token form is not
 * shown.
 */
export function noteRefusedControl(error: unknown): void {
  if (!(error instanceof ProblemError)) return
  if (error.status === 401) noteRefusal(error)
  else if (error.code === 'token_refused') void readSession()
}

/** Asks the service who this is. Roles may change while the page is open. */
export async function readSession(): Promise<void> {
  try {
    session.value = await client.peek().whoami()
  } catch (error) {
    noteRefusal(error)
  }
}

/** An error message for the user. */
export function explained(error: unknown): string {
  if (error instanceof ProblemError) {
    const { detail, errors = [] } = error.problem
    return errors.length === 0 ? detail : errors.map((one) => one.detail).join('; ')
  }
  if (error instanceof UnreachableError) return 'The service cannot be reached at the moment.'
  return error instanceof Error ? error.message : String(error)
}

/** The same for an action. If no answer arrived, the action may still have been carried out. */
export function explainedControl(error: unknown): string {
  const words = explained(error)
  return error instanceof UnreachableError
    ? `${words} The page will show whether the request was carried out when the service is available again.`
    : words
}

const PATIENCE_MILLIS = 10_000

/**
 * Uses an endpoint that needs no token. A proxy in front of an unreachable service answers with 502 or
 * similar.
 */
export async function isServiceThere(signal: AbortSignal): Promise<boolean> {
  try {
    const { status } = await fetch(new URL('livez', baseUrl), {
      cache: 'no-store',
      signal: AbortSignal.any([signal, AbortSignal.timeout(PATIENCE_MILLIS)]),
    })
    return status < 500
  } catch {
    return false
  }
}
