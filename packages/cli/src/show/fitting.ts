import { stripVTControlCharacters } from 'node:util'

const joining = /[\p{Mn}\p{Me}\p{Cf}]/u
/** Emoji, and the blocks of Chinese, Japanese and Korean. */
const twoColumns =
  /[\p{Emoji_Presentation}\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}]/u

/** How many columns terminals give a character. */
function columnsOf(character: string): number {
  // Most are ASCII.
  if (character <= '~') return 1
  if (joining.test(character)) return 0
  return twoColumns.test(character) ? 2 : 1
}

/** How many columns a text takes on a terminal; styles take none. */
export function shownWidth(text: string): number {
  return [...stripVTControlCharacters(text)].reduce((sum, character) => sum + columnsOf(character), 0)
}

/** A line that is cut where the terminal ends. */
export function fitting(line: string, width: number): string {
  if (shownWidth(line) <= width) return line
  let shown = 0
  let kept = ''
  // Sequences that style take no room.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: that is how they begin
  for (const [part] of line.matchAll(/\u001b\[[0-9;]*m|./gsu)) {
    if (!part.startsWith('\u001b')) shown += columnsOf(part)
    if (shown < width) kept += part
  }
  return `${kept}…\u001b[0m`
}

/** A text without styles, cut at its end. */
export function beginning(text: string, width: number): string {
  return shownWidth(text) <= width ? text : `${taken([...text], width - 1).join('')}…`
}

/** A text without styles, cut in its middle: names differ at their ends, and what they have in common goes first. */
export function ends(text: string, width: number): string {
  if (shownWidth(text) <= width) return text
  const characters = [...text]
  const front = Math.floor((width - 1) / 2)
  const back = taken(characters.toReversed(), width - 1 - front).reverse()
  return `${taken(characters, front).join('')}…${back.join('')}`
}

/** As many of the first as there is room for. */
function taken(characters: readonly string[], width: number): string[] {
  let used = 0
  const end = characters.findIndex((character) => {
    used += columnsOf(character)
    return used > width
  })
  return characters.slice(0, end === -1 ? characters.length : end)
}
