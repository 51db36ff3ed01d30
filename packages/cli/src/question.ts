import { createInterface } from 'node:readline'
import { Interruption } from './interruption.ts'

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
