import { stripVTControlCharacters } from 'node:util'

/** How many characters a text takes on a terminal; styles take none. */
export function shownWidth(text: string): number {
  return [...stripVTControlCharacters(text)].length
}

/** A line that is cut where the terminal ends. */
export function fitting(line: string, width: number): string {
  if (shownWidth(line) <= width) return line
  let shown = 0
  let kept = ''
  // Sequences that style take no room.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: that is how they begin
  for (const [part] of line.matchAll(/\u001b\[[0-9;]*m|./gsu)) {
    if (!part.startsWith('\u001b')) shown += 1
    if (shown < width) kept += part
  }
  return `${kept}…\u001b[0m`
}

/** A text without styles, cut at its end. */
export function beginning(text: string, width: number): string {
  const characters = [...text]
  return characters.length <= width ? text : `${characters.slice(0, Math.max(width - 1, 0)).join('')}…`
}
