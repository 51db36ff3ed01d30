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

/** Writes a line of output to stdout. */
export function print(text: string): void {
  process.stdout.write(`${text}\n`)
}

export function printJson(value: unknown): void {
  print(JSON.stringify(value))
}

/** Writes a line to stderr: notes, progress, errors. */
export function note(text: string): void {
  process.stderr.write(`${text}\n`)
}

/** Writes a note. With --json it is a line of JSON. */
export function remark(given: Arguments, text: string): void {
  note(given.switch('json') ? JSON.stringify({ note: text }) : `baton: ${text}`)
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
