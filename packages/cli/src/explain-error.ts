import {
  BatonError,
  ConflictError,
  ContractError,
  ProblemError,
  UnexpectedAnswerError,
  UnreachableError,
} from '@baton/client'
import { errorCodes } from '@baton/protocol'
import { commands } from './commands.ts'
import { exitCodes } from './exit-codes.ts'
import { InputError } from './input/input-error.ts'
import { Interruption } from './interruption.ts'
import { UsageError } from './usage-error.ts'

/** What a person, or with --json a program, needs to know about a failure. */
export function explain(error: unknown, argv: readonly string[]): { text: string; exitCode: number } {
  const exitCode = exitCodeOf(error)
  if (argv.includes('--json')) return { text: JSON.stringify({ error: asData(error) }), exitCode }
  return { text: linesOf(error, argv[0]).join('\n'), exitCode }
}

function exitCodeOf(error: unknown): number {
  if (error instanceof UsageError) return exitCodes.usage
  if (error instanceof Interruption) return error.exitCode
  if (error instanceof InputError || error instanceof ContractError) return exitCodes.contract
  if (error instanceof UnreachableError || (error instanceof UnexpectedAnswerError && error.retryable)) {
    return exitCodes.unreachable
  }
  return error instanceof ProblemError && error.status === 404 ? exitCodes.nothing : exitCodes.refused
}

function linesOf(error: unknown, command: string | undefined): string[] {
  if (error instanceof UsageError) {
    const about = commands.some(({ name }) => name === command) ? ` ${command}` : ''
    return [`baton: ${error.message}`, `baton${about} --help tells more.`]
  }
  if (error instanceof InputError) return error.lines.map((line) => `baton: ${line}`)
  if (error instanceof ContractError) {
    return [
      `baton: ${error.problem.title}`,
      ...error.violations.map(({ pointer, detail }) => `  ${pointer || '(the whole)'}  ${detail}`),
      ...omitted(error.violationCount - error.violations.length),
    ]
  }
  if (error instanceof ConflictError) {
    return [
      `baton: ${error.problem.title}`,
      ...error.conflicts.map(({ pointer, detail }) => `  ${pointer}  ${detail}`),
      ...omitted(error.conflictCount - error.conflicts.length),
      errorCodes.partition_conflict.remedy,
    ]
  }
  if (error instanceof ProblemError) {
    const known = Object.hasOwn(errorCodes, error.code) ? errorCodes[error.code].remedy : ''
    return [`baton: ${error.problem.detail}`, ...(known === '' ? [] : [known])]
  }
  if (error instanceof UnreachableError) {
    return [`baton: ${error.message}`, 'Is the service running? --url or BATON_URL say where it is.']
  }
  if (error instanceof BatonError || error instanceof Interruption || isFault(error)) {
    return [`baton: ${(error as Error).message}`]
  }
  return [`baton: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`]
}

function omitted(count: number): string[] {
  return count > 0 ? [`  … and ${count} more`] : []
}

/** What the operating system says no to needs no stack. */
function isFault(error: unknown): boolean {
  return error instanceof Error && 'code' in error && 'syscall' in error
}

function asData(error: unknown): object {
  if (error instanceof ProblemError) return { ...error.problem, stored: error.stored }
  if (error instanceof InputError) return { name: error.name, detail: error.message, lines: error.lines }
  const { name, message } = error instanceof Error ? error : { name: 'Error', message: String(error) }
  return { name, detail: message }
}
