import { styleText } from 'node:util'
import type { InstanceStatus, PartitionState, TaskState } from '@baton/client'
import type { Arguments } from './arguments.ts'

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

/** Writes a line for programs and people to read. */
export function print(text: string): void {
  process.stdout.write(`${text}\n`)
}

export function printJson(value: unknown): void {
  print(JSON.stringify(value))
}

/** Writes a line beside the answer: notes, progress, what went wrong. */
export function note(text: string): void {
  process.stderr.write(`${text}\n`)
}

/** A note on the way to the answer; where a program reads along, as a line of JSON. */
export function remark(given: Arguments, text: string): void {
  note(given.switch('json') ? JSON.stringify({ note: text }) : `baton: ${text}`)
}

type Style = Parameters<typeof styleText>[0]

/** Styled where the stream shows styles; NO_COLOR and FORCE_COLOR are heeded. */
export function styled(style: Style, text: string, stream: NodeJS.WriteStream = process.stdout): string {
  return styleText(style, text, { stream })
}

/** Some terminals, serial ones and those of CI for instance, do not know their size and say 0. */
export function widthOf(stream: { readonly columns?: number }): number {
  return stream.columns || 100
}

export function heightOf(stream: { readonly rows?: number }): number {
  return stream.rows || 24
}
