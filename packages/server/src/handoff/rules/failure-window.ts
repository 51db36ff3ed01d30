/** A task pauses itself when at least this share of its last attempts failed or expired. */
export interface PauseAfterFailures {
  readonly share: number
  readonly of: number
}

/** Oldest first: `1` failed or expired, `0` done. Releases and revocations say nothing about the task. */
export type FailureWindow = string

export const withAttempt = (
  window: FailureWindow,
  hasFailed: boolean,
  { of }: PauseAfterFailures,
): FailureWindow => `${window}${hasFailed ? '1' : '0'}`.slice(-of)

/** An expired lease was renewed: its attempt goes on, and counts when it ends. */
export function withoutExpiry(window: FailureWindow): FailureWindow {
  const at = window.lastIndexOf('1')
  return at === -1 ? window : window.slice(0, at) + window.slice(at + 1)
}

/** Why the task must pause; null if it need not. */
export function reasonToPause(window: FailureWindow, { share, of }: PauseAfterFailures): string | null {
  const failed = window.replaceAll('0', '').length
  if (window.length < of || failed / of < share) return null
  return `${failed} of the last ${of} ${of === 1 ? 'attempt' : 'attempts'} failed or expired`
}
