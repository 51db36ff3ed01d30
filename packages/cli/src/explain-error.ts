import {
  BatonError,
  ContractError,
  type ProblemCode,
  ProblemError,
  UnexpectedAnswerError,
  UnreachableError,
  UnsendableError,
} from '@baton/client'
import { errorCodes } from '@baton/protocol/core'
import { commands } from './commands.ts'
import { LocatedProblem, type Origin } from './connection.ts'
import { exitCodes, Interruption, Refusal, UsageError } from './errors.ts'
import { InputError } from './input/json-values.ts'
import { SpoolError } from './input/spool.ts'
import { counted } from './show/numbers.ts'
import { jsonLine, shown } from './terminal.ts'

/** For an answer that is not from Baton, or from a wrong path. */
const urlHint =
  'Check --url or BATON_URL: it must be the URL of Baton, including its base path if it has one.'

/** For an answer of a proxy that did not get one from Baton. */
const proxyHint = 'A proxy answered. Check that the service is running, and that the proxy can reach it.'

/**
 * Replaces messages of the protocol that are written for authors of requests, not for users of the command.
 */
const ownWords: Readonly<Record<string, { readonly detail?: string; readonly remedy?: string }>> = {
  token_missing: { detail: 'the service requires a token', remedy: 'Set BATON_TOKEN or --token.' },
  token_unknown: { remedy: 'Check that BATON_TOKEN or --token is a token of this service.' },
  route_unknown: { remedy: urlHint },
  task_unknown: { remedy: 'Check the id: baton tasks lists all tasks.' },
  partition_unknown: { remedy: 'baton partitions TASK lists the partitions.' },
  contract_violation: { detail: 'the service refused the request', remedy: '' },
}

/** Explains a problem to a person: what is wrong, where, and what to do. */
function problemLines(error: ProblemError, origin: Origin | undefined): string[] {
  const { problem, code } = error
  const faults = faultLines(error, origin)
  const words = ownWords[code]
  const remedy = words?.remedy ?? (Object.hasOwn(errorCodes, code) ? errorCodes[code].remedy : '')
  const hint = origin?.hintFor?.(problem.errors ?? [])
  return [
    ...(isInputFault(error)
      ? faults.map((line) => `baton: ${line}`)
      : [
          `baton: ${words?.detail ?? (faults.length > 0 ? problem.title : problem.detail)}`,
          ...faults.map((line) => `  ${line}`),
        ]),
    ...(remedy === '' ? [] : [remedy]),
    ...(hint === undefined ? [] : [hint]),
  ]
}

/** Whether the client found the fault before sending. It is then reported like any other fault in a file. */
function isInputFault(error: ProblemError): boolean {
  return error instanceof ContractError && error.foundBy === 'client'
}

function faultLines({ problem }: ProblemError, origin: Origin | undefined): string[] {
  const { errors = [], conflicts = [], errorsOmitted = 0, conflictsOmitted = 0 } = problem
  const line = (pointer: string, detail: string) => {
    const place = origin?.placeOf(pointer) ?? pointer
    const said = origin?.inItsTerms?.(detail) ?? detail
    return place === '' ? said : `${shown(place)}: ${said}`
  }
  const omitted = errorsOmitted + conflictsOmitted
  return [
    ...errors.map(({ pointer, detail }) => line(pointer, detail)),
    ...conflicts.map(({ pointer, partition_name, detail }) =>
      line(pointer, `${shown(partition_name)}: ${detail}`),
    ),
    ...(omitted > 0 ? [`… and ${omitted} more`] : []),
  ]
}

/** Explains an error to a person, or with --json to a program. */
export function explain(thrown: unknown, argv: readonly string[]): { text: string; exitCode: number } {
  const [error, origin] =
    thrown instanceof LocatedProblem ? [thrown.problemError, thrown.origin] : [thrown, undefined]
  const exitCode = exitCodeOf(error)
  if (argv.includes('--json')) return { text: jsonLine({ error: asData(error) }), exitCode }
  return { text: [...linesOf(error, argv[0], origin), ...storedLines(error)].join('\n'), exitCode }
}

/** A call-back in several requests may have been stored in part. */
function storedLines(error: unknown): string[] {
  const sent = error instanceof BatonError ? (error.stored?.sent ?? 0) : 0
  return sent === 0 ? [] : [`Stored before that: ${counted(sent, 'descriptor')}.`]
}

function exitCodeOf(error: unknown): number {
  if (error instanceof UsageError || error instanceof UnsendableError) return exitCodes.usage
  if (error instanceof Interruption) return error.exitCode
  if (error instanceof InputError) return exitCodes.contract
  if (error instanceof ContractError && error.foundBy === 'client') return exitCodes.contract
  if (error instanceof UnreachableError || (error instanceof UnexpectedAnswerError && error.retryable)) {
    return exitCodes.unreachable
  }
  return error instanceof ProblemError && absent.has(error.code) ? exitCodes.nothing : exitCodes.refused
}

/**
 * Not every 404: the one for an unknown route means that the URL is wrong, and says nothing about the task.
 */
const absent: ReadonlySet<ProblemCode> = new Set([
  'task_unknown',
  'partition_unknown',
  'instance_unknown',
  'table_unknown',
])

function linesOf(error: unknown, command: string | undefined, origin: Origin | undefined): string[] {
  if (error instanceof UsageError) {
    const about = commands.some(({ name }) => name === command) ? ` ${command}` : ''
    return [`baton: ${error.message}`, `Run baton${about} --help for help.`]
  }
  if (error instanceof InputError) {
    const hint = error.hint === undefined ? [] : [error.hint]
    return [...error.lines.map((line) => `baton: ${line}`), ...hint]
  }
  if (error instanceof ProblemError) return problemLines(error, origin)
  if (error instanceof UnreachableError) {
    return [
      `baton: ${error.message}`,
      'Check that the service is running, and that --url or BATON_URL is correct.',
    ]
  }
  if (error instanceof UnexpectedAnswerError) {
    return [`baton: the answer is not from Baton: ${error.message}`, error.retryable ? proxyHint : urlHint]
  }
  const isPlain = [BatonError, Interruption, Refusal, SpoolError].some((kind) => error instanceof kind)
  if (isPlain || isFault(error)) return [`baton: ${(error as Error).message}`]
  return [`baton: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`]
}

/** An error of the operating system needs no stack trace. */
function isFault(error: unknown): boolean {
  return error instanceof Error && 'code' in error && 'syscall' in error
}

function asData(error: unknown): object {
  return error instanceof BatonError ? { ...dataOf(error), stored: error.stored } : dataOf(error)
}

function dataOf(error: unknown): object {
  if (error instanceof ProblemError) return error.problem
  if (error instanceof InputError) {
    return { name: error.name, detail: error.message, lines: error.lines, hint: error.hint }
  }
  const { name, message } = error instanceof Error ? error : { name: 'Error', message: String(error) }
  return { name, detail: message }
}
