import { setTimeout as pause } from 'node:timers/promises'
import { type BatonClient, BatonError, ProblemError, type TaskView } from '@baton/client'
import { type Arguments, type Command, LONGEST_TIMER_SECONDS } from '../command-line.ts'
import { connect, LONGEST_REQUEST_SECONDS, placeFlags } from '../connection.ts'
import { exitCodes, interruptible, UsageError } from '../errors.ts'
import { count, counted } from '../show/numbers.ts'
import { WaitLine } from '../show/progress.ts'
import { print, printJson, remark, shown } from '../terminal.ts'
import { missingText } from './control.ts'

const MOST_TASKS = 1000
/** A request close to the time limit still has this time, so that the tasks are looked at in any case. */
const SHORTEST_REQUEST_SECONDS = 1

export const wait: Command = {
  operands: 'TASK…',
  operandCount: [1, MOST_TASKS],
  details: `Waits until each task is done, stalled or cancelled, and shows the progress. If the service is unavailable, it retries
until the service answers. The exit code is the worst result of all tasks:
  ${String(exitCodes.ok).padStart(3)}  all tasks are done
  ${String(exitCodes.refused).padStart(3)}  a task is done, but expected partitions were not called back
  ${String(exitCodes.stalled).padStart(3)}  a task is stalled and needs an operator
  ${String(exitCodes.cancelled).padStart(3)}  a task is cancelled
  ${String(exitCodes.nothing).padStart(3)}  a task does not exist, and --appear is not set
  ${String(exitCodes.timeOver).padStart(3)}  the time limit of --for has passed`,
  flags: {
    for: {
      kind: 'number',
      placeholder: 'SECONDS',
      fractions: true,
      otherwise: 'no limit',
      description: 'time limit',
    },
    appear: { kind: 'switch', description: 'also wait for tasks that do not exist yet' },
    interval: {
      kind: 'number',
      placeholder: 'SECONDS',
      fractions: true,
      minimum: 0.1,
      maximum: LONGEST_TIMER_SECONDS,
      default: 1,
      description: 'refresh interval',
    },
    quiet: { kind: 'switch', short: 'q', description: 'print nothing' },
    ...placeFlags,
    json: { kind: 'switch', description: 'print JSON, including errors' },
  },
  examples: [
    { line: 'baton wait orders-2026-03 && ./publish.sh', says: 'Continue when the task is done' },
    {
      line: 'baton wait --appear --for 3600 orders-2026-03 lines-2026-03',
      says: 'Wait up to an hour for both tasks',
    },
  ],
  run: (given) => interruptible((signal) => run(given, signal)),
}

/** A task that was not called back yet is null. */
type Seen = readonly (TaskView | null)[]

async function run(given: Arguments, signal: AbortSignal): Promise<number> {
  const taskIds = [...new Set(given.operands)]
  const client = connect(given, { retryForSeconds: 0 })
  const seconds = given.number('for')
  const deadline = seconds === undefined ? Number.POSITIVE_INFINITY : performance.now() + seconds * 1000
  using line = new WaitLine(!given.switch('quiet') && !given.switch('json'))
  let isAway = false
  let seen: Seen = taskIds.map(() => null)
  while (true) {
    try {
      seen = await look(client, taskIds, given, { deadline, signal })
      isAway = false
      line.show(seen)
      if (seen.every(isEnded)) return ended(seen as readonly TaskView[], given, line)
    } catch (error) {
      if (signal.aborted) throw signal.reason
      if (!(error instanceof BatonError) || !error.retryable) throw error
      if (!isAway) remark(given, `${error.message}; retrying until the service is available`)
      isAway = true
    }
    const left = deadline - performance.now()
    if (left <= 0) {
      line.end()
      if (given.switch('json')) printJson({ tasks: seen.filter((task) => task !== null) })
      else if (!given.switch('quiet'))
        for (const [at, task] of seen.entries()) print(stateText(taskIds[at], task))
      remark(given, `not all tasks ended within ${seconds} s`)
      return exitCodes.timeOver
    }
    await pause(Math.min(given.numberOrDefault('interval') * 1000, left), undefined, { signal }).catch(() => {
      throw signal.reason
    })
  }
}

async function look(
  client: BatonClient,
  taskIds: readonly string[],
  given: Arguments,
  { deadline, signal }: { readonly deadline: number; readonly signal: AbortSignal },
): Promise<Seen> {
  const seen: (TaskView | null)[] = []
  for (const taskId of taskIds) {
    if (taskId === '') throw new UsageError('a task id must not be empty')
    const left = Math.max((deadline - performance.now()) / 1000, SHORTEST_REQUEST_SECONDS)
    const limits = { signal, timeoutSeconds: Math.min(left, LONGEST_REQUEST_SECONDS) }
    seen.push(await client.task(taskId, limits).catch((error: unknown) => absent(error, given)))
  }
  return seen
}

function absent(error: unknown, given: Arguments): null {
  if (given.switch('appear') && error instanceof ProblemError && error.code === 'task_unknown') return null
  throw error
}

const isEnded = (task: TaskView | null): boolean =>
  task !== null && ['done', 'stalled', 'cancelled'].includes(task.state)

function ended(tasks: readonly TaskView[], given: Arguments, line: WaitLine): number {
  line.end()
  if (given.switch('json')) printJson({ tasks })
  else if (!given.switch('quiet')) for (const task of tasks) print(endText(task))
  const codes = tasks.map(codeOf)
  const worstFirst = [exitCodes.cancelled, exitCodes.stalled, exitCodes.refused]
  return worstFirst.find((code) => codes.includes(code)) ?? exitCodes.ok
}

function endText(task: TaskView): string {
  const missing = task.state === 'done' ? missingText(task) : undefined
  const but = missing === undefined ? '' : `, but ${missing} were not called back`
  return `${shown(task.taskId)} is ${task.state}${but}`
}

/** The state of a task when the time is over. */
function stateText(taskId = '', task: TaskView | null): string {
  if (task === null) return `${shown(taskId)} was not seen`
  if (isEnded(task)) return endText(task)
  const { done, total } = task.partitions
  return `${endText(task)}: ${count(done)} of ${counted(total, 'partition')} done`
}

function codeOf(task: TaskView): number {
  if (task.state === 'cancelled') return exitCodes.cancelled
  if (task.state === 'stalled') return exitCodes.stalled
  return missingText(task) === undefined ? exitCodes.ok : exitCodes.refused
}
