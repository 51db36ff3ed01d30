import { styleText } from 'node:util'
import type { InstanceStatus, PartitionState, TaskState } from '@baton/client'
import type { Arguments } from './command-line.ts'

export const stateColours = {
  ready: 'blue',
  held: 'dim',
  leased: 'yellow',
  delayed: 'magenta',
  parked: 'red',
  done: 'green',
  cancelled: 'dim',
} as const satisfies Record<PartitionState, string>

export const taskColours = {
  open: 'blue',
  paused: 'yellow',
  done: 'green',
  stalled: 'red',
  cancelled: 'dim',
} as const satisfies Record<TaskState, string>

export const instanceColours = {
  up: 'green',
  silent: 'yellow',
  lost: 'red',
  draining: 'yellow',
  down: 'red',
} as const satisfies Record<InstanceStatus['status'], string>

/**
 * Characters that move the cursor, change the terminal, or reorder the text around them. Names, reasons and
 * errors come from others and may contain them.
 */
const UNSAFE = /[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu

/** A text of others on one line. */
export function shown(text: string): string {
  return text.replaceAll(UNSAFE, '·')
}

/** The style sequences that `styled` writes, and line breaks. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: style sequences begin with ESC
const OWN = /(\u001b\[(?:[012]|22|3\d)m|[\n\t])/

/** Every text that this command writes passes through here: of unsafe characters, only its own stay. */
export function safe(text: string): string {
  return text
    .split(OWN)
    .map((part, at) => (at % 2 === 0 ? shown(part) : part))
    .join('')
}

/** JSON on one line. Unsafe characters are escaped, so a program reads the same value. */
export function jsonLine(value: unknown): string {
  const escaped = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  return JSON.stringify(value).replaceAll(UNSAFE, escaped)
}

/** Writes a line of output to stdout. Returns whether its buffer has room for more. */
export function print(text: string): boolean {
  return process.stdout.write(`${safe(text)}\n`)
}

export function printJson(value: unknown): boolean {
  return print(jsonLine(value))
}

/** The output of a command: `data` with --json, otherwise the text, and below it what to note. */
export function answer(given: Arguments, data: unknown, text: () => string, noted?: string): void {
  if (given.switch('json')) printJson(data)
  else {
    print(text())
    if (noted !== undefined) note(noted)
  }
}

/** Writes a line to stderr: notes, progress, errors. */
export function note(text: string): void {
  process.stderr.write(`${safe(text)}\n`)
}

/** Writes a note. With --json it is a line of JSON. */
export function remark(given: Arguments, text: string): void {
  note(given.switch('json') ? jsonLine({ note: text }) : `baton: ${text}`)
}

/** Passes on what a command of the user wrote to its stderr, unchanged. */
export function passOn(bytes: Buffer): void {
  process.stderr.write(bytes)
}

const CLEAR_LINE = '\u001b[K'
const CLEAR_BELOW = '\u001b[J'

/** Draws the line of the cursor again. */
export function drawLine(stream: NodeJS.WriteStream, text: string): void {
  stream.write(`\r${safe(text)}${CLEAR_LINE}`)
}

/** Draws lines over the `height` lines above the cursor. Clearing the end of each avoids flicker. */
export function drawLines(stream: NodeJS.WriteStream, lines: readonly string[], height: number): void {
  const back = height > 0 ? `\u001b[${height}A\r` : '\r'
  stream.write(`${back}${lines.map((line) => `${safe(line)}${CLEAR_LINE}\n`).join('')}${CLEAR_BELOW}`)
}

export function showCursor(stream: NodeJS.WriteStream, isShown: boolean): void {
  stream.write(isShown ? '\u001b[?25h' : '\u001b[?25l')
}

type Style = Parameters<typeof styleText>[0]

/**
 * Applies a style if the stream supports it. Respects NO_COLOR and FORCE_COLOR. A state that only a newer
 * version of the service knows has no style.
 */
export function styled(
  style: Style | undefined,
  text: string,
  stream: NodeJS.WriteStream = process.stdout,
): string {
  return style === undefined ? text : styleText(style, text, { stream })
}

/** Some terminals, for instance serial ones and those of CI, do not know their size and report 0. */
export function widthOf(stream: { readonly columns?: number }): number {
  return stream.columns || 100
}

export function heightOf(stream: { readonly rows?: number }): number {
  return stream.rows || 24
}
