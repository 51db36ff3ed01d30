import { forgetToken, token } from '../service/connection.ts'
import type { LiveState } from '../service/live.ts'

const liveWords: Record<LiveState, string> = {
  connecting: 'Connecting',
  live: 'Live',
  lost: 'Connection lost, trying again',
  asleep: 'Asleep',
  locked: 'Token needed',
}

/** The header of every page: the navigation, and whether the content is up to date. */
interface MastheadProps {
  readonly here: 'overview' | 'webhooks' | 'reference'
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
        <a href="./#/" aria-current={here === 'overview' ? 'page' : undefined}>
          Overview
        </a>
        <a href="./#/webhooks" aria-current={here === 'webhooks' ? 'page' : undefined}>
          Webhooks
        </a>
        <a href="docs" aria-current={here === 'reference' ? 'page' : undefined}>
          API
        </a>
      </nav>
      <div class="masthead-end">
        {live === undefined ? null : (
          <p class={`live-state ${live}`} role="status">
            <span class="dot" aria-hidden="true" />
            {liveWords[live]}
          </p>
        )}
        {token.value === null ? null : (
          <button type="button" class="button small" title="Forget it and give another" onClick={forgetToken}>
            <span class="wide-only">Change token</span>
            <span class="narrow-only">Token</span>
          </button>
        )}
      </div>
    </header>
  )
}
