import { ProblemError } from '@baton/client'
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import {
  explained,
  forgetToken,
  keepToken,
  noteRefusalCode,
  session,
  type TokenWant,
  token,
  tokenWanted,
} from '../service/connection.ts'
import type { LiveState } from '../service/live.ts'
import { focusContent } from './panel.tsx'

const liveWords: Record<LiveState, string> = {
  connecting: 'Connecting',
  live: 'Live',
  lost: 'Connection lost, retrying',
  asleep: 'Asleep',
  locked: 'Token needed',
}

export type Section = 'overview' | 'instances' | 'tables' | 'webhooks' | 'reference'

const sections: readonly { readonly name: Section; readonly href: string; readonly text: string }[] = [
  { name: 'overview', href: './#/', text: 'Overview' },
  { name: 'instances', href: './#/instances', text: 'Instances' },
  { name: 'tables', href: './#/tables', text: 'Tables' },
  { name: 'webhooks', href: './#/webhooks', text: 'Webhooks' },
  { name: 'reference', href: 'docs', text: 'API' },
]

/** Not a link: the hash of the URL contains the route, and a jump must not change it. */
export function SkipLink() {
  return (
    <button type="button" class="skip" onClick={focusContent}>
      Skip to content
    </button>
  )
}

/** The header of every page: the navigation, and whether the content is up to date. */
interface MastheadProps {
  readonly here: Section
  readonly live?: LiveState
}

export function Masthead({ here, live }: MastheadProps) {
  return (
    <header class="masthead">
      <a class="brand" href="./#/">
        <svg viewBox="0 0 32 32" width="26" height="26" aria-hidden="true">
          <rect width="32" height="32" rx="8" class="brand-ground" />
          <path d="M9.5 22.500 15 17" class="brand-back" />
          <path d="m17 15 5.500-5.500" class="brand-front" />
        </svg>
        <span class="brand-name">Baton</span>
      </a>
      <nav aria-label="Pages">
        {sections.map(({ name, href, text }) => (
          <a key={name} href={href} aria-current={here === name ? 'page' : undefined}>
            {text}
          </a>
        ))}
      </nav>
      <div class="masthead-end">
        {live === undefined ? null : (
          <p class={`live-state ${live}`} role="status">
            <span class="dot" aria-hidden="true" />
            <span>{liveWords[live]}</span>
          </p>
        )}
        {session.value?.name == null ? null : (
          <p class="signed-in cut" title={`${session.value.name}: ${session.value.roles.join(', ')}`}>
            {session.value.name}
          </p>
        )}
        {token.value === null ? null : (
          <button type="button" class="button small" onClick={forgetToken}>
            Sign out
          </button>
        )}
      </div>
    </header>
  )
}

/** The characters that a header can carry and a tokens file may contain. */
const TOKEN = /^[\x21-\x7e]+$/

const words: Record<Exclude<TokenWant, 'missing'>, string> = {
  unknown: 'The service does not know this token.',
  refused: 'The role of this token does not allow viewing. Use a token with the role viewer or operator.',
}

interface TokenFormProps {
  readonly why: TokenWant
  /** What the token is needed for. */
  readonly purpose: string
  /** Sends a request with the token. Rejects if the token is not accepted. */
  readonly attempt: (token: string) => Promise<unknown>
}

/** Prompts for a token. The token is stored once the service has accepted it. */
export function TokenForm({ why, purpose, attempt }: TokenFormProps) {
  const [text, setText] = useState('')
  const [busy, setBusy] = useState(false)
  const [failure, setFailure] = useState<string | null>(null)
  const field = useRef<HTMLInputElement>(null)
  const faultId = useId()
  useEffect(() => field.current?.focus(), [])

  const tryIt = async () => {
    if (text === '' || busy) return
    setFailure(null)
    if (!TOKEN.test(text)) {
      tokenWanted.value = 'unknown'
      return
    }
    setBusy(true)
    try {
      await attempt(text)
      keepToken(text)
    } catch (error) {
      const isRefused = error instanceof ProblemError && noteRefusalCode(error.code)
      if (!isRefused) setFailure(`The token could not be checked. ${explained(error)}`)
    } finally {
      setBusy(false)
    }
  }

  const fault = failure ?? (why === 'missing' ? null : words[why])
  return (
    <main class="page" id="content">
      <form
        class="panel token-form"
        onSubmit={(event) => {
          event.preventDefault()
          void tryIt()
        }}
      >
        <h1>Sign in</h1>
        <p>{purpose}</p>
        <label class="field">
          <span>Token</span>
          <input
            ref={field}
            type="password"
            autoComplete="off"
            aria-invalid={fault !== null}
            aria-describedby={fault === null ? undefined : faultId}
            value={text}
            onInput={(event) => setText(event.currentTarget.value.trim())}
          />
          <small>The token is stored in this tab until it is closed.</small>
        </label>
        <p id={faultId} class="fault" role="alert">
          {fault}
        </p>
        <button type="submit" class="button primary" aria-disabled={busy}>
          Sign in
        </button>
      </form>
    </main>
  )
}
