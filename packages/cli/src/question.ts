import { createInterface } from 'node:readline'
import type { Arguments } from './arguments.ts'
import { exitCodes } from './exit-codes.ts'
import { Interruption } from './interruption.ts'
import { note } from './terminal.ts'
import { UsageError } from './usage-error.ts'

export interface QuestionStreams {
  readonly input: NodeJS.ReadableStream
  readonly output: NodeJS.WritableStream
}

/**
 * Asks a person; whoever ends the input with Ctrl-D has not said yes. Ctrl-C is thrown: at a question the terminal
 * hands it over as a key, and no signal comes.
 */
export function confirmed(question: string, streams: QuestionStreams): Promise<boolean> {
  const terminal = createInterface({ ...streams, terminal: true })
  const { promise, resolve, reject } = Promise.withResolvers<boolean>()
  const unanswered = () => {
    // What is told next begins on a line of its own.
    streams.output.write('\n')
  }
  terminal.question(`${question} [y/N] `, (answer) => resolve(/^y(es)?$/i.test(answer.trim())))
  terminal.on('SIGINT', () => {
    unanswered()
    reject(new Interruption('SIGINT'))
  })
  terminal.on('close', () => {
    unanswered()
    resolve(false)
  })
  return promise.finally(() => terminal.removeAllListeners('close').close())
}

/**
 * Asks unless --yes was said. The exit code for a no; undefined for a yes. Where nobody can be asked, silence is no yes: what
 * cannot be undone has to be meant.
 */
export async function agreed(question: string, given: Arguments): Promise<number | undefined> {
  if (given.switch('yes')) return undefined
  const { stdin, stderr } = process
  if (!stdin.isTTY || !stderr.isTTY) {
    throw new UsageError('this cannot be undone, and without a terminal nobody can be asked: add --yes')
  }
  const refusal = await refusalOf(question, stdin, stderr)
  if (refusal !== undefined) note('nothing was changed')
  return refusal
}

async function refusalOf(
  question: string,
  input: NodeJS.ReadStream,
  output: NodeJS.WriteStream,
): Promise<number | undefined> {
  try {
    return (await confirmed(question, { input, output })) ? undefined : exitCodes.refused
  } catch (error) {
    if (error instanceof Interruption) return error.exitCode
    throw error
  }
}
