import { useState } from 'preact/hooks'
import { useToken as keepToken } from './service/connection.ts'

/** Asks for a token where the service wants one. */
export function TokenForm({ why }: { why: 'missing' | 'refused' }) {
  const [text, setText] = useState('')
  return (
    <main class="page" id="content">
      <form
        class="panel token-form"
        onSubmit={(event) => {
          event.preventDefault()
          if (text !== '') keepToken(text)
        }}
      >
        <h1>This service asks for a token</h1>
        <p>
          {why === 'refused'
            ? 'The token is not known here, or its role does not allow looking.'
            : 'A token with the role viewer shows everything; one with the role operator can also pause, retry and cancel.'}
        </p>
        <label class="field">
          <span>Token</span>
          <input
            type="password"
            autoComplete="off"
            value={text}
            onInput={(event) => setText(event.currentTarget.value.trim())}
          />
          <small>Kept in this tab until it is closed.</small>
        </label>
        <button type="submit" class="button primary">
          Look
        </button>
      </form>
    </main>
  )
}
