import { BatonClient, ProblemError, UnreachableError } from '@baton/client'
import { batch, computed, signal } from '@preact/signals'

const TOKEN_KEY = 'baton-token'
const LOOKS_ONLY_KEY = 'baton-token-looks-only'
/** A person waits: better to say soon that the service is away than to try for long. */
const RETRY_FOR_SECONDS = 3

/** The page lies at the service's base URL, whatever path that has. */
export const baseUrl = new URL('.', location.href)

const storedToken = signal(sessionStorage.getItem(TOKEN_KEY))

/** Why the service wants a token: it has none, does not know the one it has, or knows it for other work. */
export type TokenWant = 'missing' | 'unknown' | 'refused'

/** False once an order was refused for want of a role: what would be refused is not offered again. */
export const mayOrder = signal(sessionStorage.getItem(LOOKS_ONLY_KEY) === null)

export const tokenWanted = signal<'no' | TokenWant>('no')

const wantOfCode: Readonly<Record<string, TokenWant>> = {
  token_missing: 'missing',
  token_unknown: 'unknown',
  token_refused: 'refused',
}

export const client = computed(() => clientWith(storedToken.value))

export const token = computed(() => storedToken.value)

/** Asks the service as the bearer of a token that is not kept yet. */
export function clientWith(bearer: string | null): BatonClient {
  return new BatonClient({
    url: baseUrl,
    retryForSeconds: RETRY_FOR_SECONDS,
    ...(bearer === null ? {} : { token: bearer }),
  })
}

/** Kept for this tab only, and until it is closed. */
export function keepToken(text: string): void {
  sessionStorage.setItem(TOKEN_KEY, text)
  sessionStorage.removeItem(LOOKS_ONLY_KEY)
  batch(() => {
    storedToken.value = text
    tokenWanted.value = 'no'
    mayOrder.value = true
  })
}

/** The page then asks for another. */
export function forgetToken(): void {
  sessionStorage.removeItem(TOKEN_KEY)
  sessionStorage.removeItem(LOOKS_ONLY_KEY)
  batch(() => {
    storedToken.value = null
    tokenWanted.value = 'missing'
  })
}

/** Looks whether reading failed for want of a token; then the page asks for one. Returns whether it did. */
export function noteRefusal(error: unknown): boolean {
  return error instanceof ProblemError && noteRefusalCode(error.code)
}

export function noteRefusalCode(code: string): boolean {
  const want = wantOfCode[code]
  if (want === undefined) return false
  tokenWanted.value = want
  return true
}

/** An order may ask for more than looking does: a role that is lacking for it is no reason to ask for a token. */
export function noteRefusedOrder(error: unknown): void {
  if (!(error instanceof ProblemError)) return
  if (error.status === 401) noteRefusal(error)
  else if (error.code === 'token_refused') {
    sessionStorage.setItem(LOOKS_ONLY_KEY, 'yes')
    mayOrder.value = false
  }
}

/** An error in words for the person before the screen. */
export function explained(error: unknown): string {
  if (error instanceof ProblemError) {
    const { detail, errors = [] } = error.problem
    return errors.length === 0 ? detail : errors.map((one) => one.detail).join('; ')
  }
  if (error instanceof UnreachableError) return 'The service cannot be reached at the moment.'
  return error instanceof Error ? error.message : String(error)
}

/** The same for an order: one that was not answered may have been carried out all the same. */
export function explainedOrder(error: unknown): string {
  const words = explained(error)
  return error instanceof UnreachableError
    ? `${words} Whether the order arrived will show when it is back.`
    : words
}
