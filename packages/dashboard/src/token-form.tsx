import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { explained, keepToken, noteRefusal, type TokenWant, tokenWanted } from './service/connection.ts'

/** The characters that a header can carry and a tokens file may contain. */
const TOKEN = /^[\x21-\x7e]+$/

const words: Record<Exclude<TokenWant, 'missing'>, string> = {
  unknown: 'This token is not known here.',
  refused: 'This token is known, but its role does not allow looking: that takes viewer or operator.',
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
      if (!noteRefusal(error)) setFailure(`It could not be tried. ${explained(error)}`)
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
        <h1>This service asks for a token</h1>
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
          <small>Kept in this tab until it is closed.</small>
        </label>
        <p id={faultId} class="fault" role="alert">
          {fault}
        </p>
        <button type="submit" class="button primary" aria-disabled={busy}>
          Look
        </button>
      </form>
    </main>
  )
}
