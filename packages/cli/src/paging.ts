import type { Flag } from './flag.ts'

/** For every command with a limited list: continues where the previous list ended. */
export const cursorFlag: Flag = {
  kind: 'text',
  placeholder: 'NEXT',
  description: 'go on where an earlier list was cut: what it says, or its `next` in JSON',
}

/** The note below a truncated list. */
export function moreText(ways: string, cursor: string): string {
  return `there are more: ${ways}, or go on with --cursor ${cursor}`
}
