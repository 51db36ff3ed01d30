import type { Flag } from './flag.ts'

/** For every command that lists at most so many: without it, what comes after them could not be reached. */
export const cursorFlag: Flag = {
  kind: 'text',
  placeholder: 'NEXT',
  description: 'go on where an earlier list was cut: what it says, or its `next` in JSON',
}

/** Said below a list that was cut. */
export function moreText(ways: string, cursor: string): string {
  return `there are more: ${ways}, or go on with --cursor ${cursor}`
}
