import { BatonClient, ProblemError } from '@baton/client'
import { computed, signal } from '@preact/signals'

const TOKEN_KEY = 'baton-token'
/** A person waits: better to say soon that the service is away than to try for long. */
const RETRY_FOR_SECONDS = 3

/** The page lies at the service's base URL, whatever path that has. */
export const baseUrl = new URL('.', location.href)

const storedToken = signal(sessionStorage.getItem(TOKEN_KEY))

/** Whether the service asks for a token and has none, or no good one. */
export const tokenWanted = signal<'no' | 'missing' | 'refused'>('no')

export const client = computed(
  () =>
    new BatonClient({
      url: baseUrl,
      retryForSeconds: RETRY_FOR_SECONDS,
      ...(storedToken.value === null ? {} : { token: storedToken.value }),
    }),
)

export const token = computed(() => storedToken.value)

/** Kept for this tab only, and until it is closed. */
export function useToken(text: string): void {
  sessionStorage.setItem(TOKEN_KEY, text)
  storedToken.value = text
  tokenWanted.value = 'no'
}

export function forgetToken(): void {
  sessionStorage.removeItem(TOKEN_KEY)
  storedToken.value = null
  tokenWanted.value = 'missing'
}

/** Looks whether reading failed for want of a token; then the page asks for one. */
export function noteRefusal(error: unknown): void {
  if (!(error instanceof ProblemError)) return
  if (error.code === 'token_missing') tokenWanted.value = 'missing'
  if (error.code === 'token_unknown' || error.code === 'token_refused') tokenWanted.value = 'refused'
}

/** An error in words for the person before the screen. */
export function explained(error: unknown): string {
  if (error instanceof ProblemError) return error.problem.detail
  return error instanceof Error ? error.message : String(error)
}
