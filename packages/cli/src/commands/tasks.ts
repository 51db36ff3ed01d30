import { setTimeout as pause } from 'node:timers/promises'
import { type BatonClient, BatonError, type TaskState, type TaskSummary, type TaskView } from '@baton/client'
import { MAX_PAGE_LENGTH, taskStates } from '@baton/protocol/core'
import { type Arguments, type Command, LONGEST_TIMER_SECONDS } from '../command-line.ts'
import { connect, connectionFlags, cursorFlag, moreText, readPages } from '../connection.ts'
import { exitCodes, interruptible, UsageError } from '../errors.ts'
import { count, duration, rounded } from '../show/numbers.ts'
import { percent } from '../show/progress.ts'
import { fitting } from '../show/table.ts'
import { taskTable, taskView } from '../show/task.ts'
import {
  answer,
  drawLines,
  heightOf,
  print,
  printJson,
  remark,
  showCursor,
  shown,
  styled,
  taskColours,
  widthOf,
} from '../terminal.ts'
import { missingText } from './control.ts'

/**
 * Finds the tasks that changed since the last poll. Pace and remaining time are ignored, because they change
 * all the time.
 */
class Changes {
  #seen = new Map<string, string>()

  since(tasks: readonly TaskSummary[]): TaskSummary[] {
    const now = new Map(tasks.map((task) => [task.taskId, lookOf(task)]))
    const changed = tasks.filter(({ taskId }) => this.#seen.get(taskId) !== now.get(taskId))
    this.#seen = now
    return changed
  }
}

function lookOf({ state, generation, sealed, expectedPartitions, partitions, records }: TaskSummary): string {
  return JSON.stringify([state, generation, sealed, expectedPartitions, partitions, records])
}

/** A task on one line, with the time: for logs. */
function taskLine(task: TaskSummary): string {
  const { taskId, state, partitions, records, recordsPerSecond, etaSeconds } = task
  const whole = records.total > 0 ? records : partitions
  return [
    `${new Date().toTimeString().slice(0, 8)} ${shown(taskId)} ${styled(taskColours[state], state)}`,
    `${percent(whole.done, whole.total)} done`,
    `${count(partitions.done)} of ${count(partitions.total)} partitions`,
    ...(partitions.leased > 0 ? [`${count(partitions.leased)} leased`] : []),
    ...(partitions.delayed > 0 ? [`${count(partitions.delayed)} in back-off`] : []),
    ...(partitions.parked > 0 ? [`${count(partitions.parked)} parked`] : []),
    ...(recordsPerSecond === null ? [] : [`${rounded(recordsPerSecond)} records/s`]),
    ...(etaSeconds === null ? [] : [`about ${duration(etaSeconds)} left`]),
  ].join(', ')
}

/** Redraws lines of a terminal in place. The last state stays on the screen at the end. */
class Redrawn {
  readonly #stream: NodeJS.WriteStream
  #height = 0

  constructor(stream: NodeJS.WriteStream) {
    this.#stream = stream
    showCursor(stream, false)
  }

  draw(text: string): void {
    const width = widthOf(this.#stream)
    const rows = heightOf(this.#stream)
    const lines = text.split('\n').slice(0, Math.max(rows - 1, 1))
    // Lines are cut to the width, because a wrapped line would take two rows and break the count for moving
    // back up.
    const cut = lines.map((line) => fitting(line, width))
    drawLines(this.#stream, cut, this.#height)
    this.#height = lines.length
  }

  end(): void {
    showCursor(this.#stream, true)
  }
}

interface TaskEnding {
  readonly exitCode: number
  /** Why a task that is done counts as failed. */
  readonly flaw?: string
}

/** How a task ended. Undefined while it has not ended. */
function endingOf(task: TaskView): TaskEnding | undefined {
  switch (task.state) {
    case 'done':
      return doneEnding(task)
    case 'stalled':
    case 'cancelled':
      return { exitCode: exitCodes.refused }
    default:
      return undefined
  }
}

/**
 * All called-back partitions are done. The task is still incomplete if more partitions were expected, because
 * a sealed task accepts no more.
 */
function doneEnding(task: TaskView): TaskEnding {
  const missing = missingText(task)
  if (missing === undefined) return { exitCode: exitCodes.ok }
  return {
    exitCode: exitCodes.refused,
    flaw: `${shown(task.taskId)} is done, but ${missing} were not called back`,
  }
}

export const tasks: Command = {
  operands: '[TASK]',
  operandCount: [0, 1],
  details:
    'Shows all tasks, newest first, or one task by its levels. With --watch it keeps the view up to date; into a pipe or a\n' +
    'file it writes a line for each task that changed. Watching one task ends with the task: with exit code 0 if it is\n' +
    'done, and with 1 if it is stalled or cancelled, or sealed and done with expected partitions missing.',
  flags: {
    watch: { kind: 'switch', short: 'w', description: 'keep running and show every change' },
    interval: {
      kind: 'number',
      placeholder: 'SECONDS',
      fractions: true,
      minimum: 0.1,
      maximum: LONGEST_TIMER_SECONDS,
      default: 1,
      description: 'refresh interval with --watch',
    },
    state: {
      kind: 'text',
      placeholder: 'STATE',
      choices: taskStates,
      description: 'only these',
    },
    parked: { kind: 'switch', description: 'only tasks that have parked partitions' },
    search: { kind: 'text', placeholder: 'TEXT', description: 'only tasks whose id contains this text' },
    limit: {
      kind: 'number',
      placeholder: 'N',
      minimum: 1,
      maximum: MAX_PAGE_LENGTH,
      default: 20,
      description: 'maximum number of tasks',
    },
    cursor: cursorFlag,
    ...connectionFlags,
  },
  examples: [
    { line: 'baton tasks --watch', says: 'Follow all tasks' },
    { line: 'baton tasks orders-2026-03 --watch && ./publish.sh', says: 'Continue when the task is done' },
    {
      line: "baton tasks --state stalled --json | jq -r '.tasks[].taskId'",
      says: 'Tasks that need an operator',
    },
    { line: 'baton tasks --parked', says: 'Tasks with parked partitions' },
  ],
  run: async (given) => {
    refuseChoice(given)
    return given.switch('watch') ? interruptible((signal) => watch(given, signal)) : once(given)
  },
}

/** Flags that filter the list of tasks, and do not apply to a single task. */
const choosing = ['state', 'parked', 'search', 'limit', 'cursor']

/** `baton tasks TASK --state done` looks like a test of the task's state, but is not. */
function refuseChoice(given: Arguments): void {
  const flags = choosing.filter((flag) => given.switch(flag)).map((flag) => `--${flag}`)
  if (given.operands.length === 0 || flags.length === 0) return
  const choose = flags.length === 1 ? 'chooses' : 'choose'
  throw new UsageError(`${flags.join(', ')} ${choose} from a list and cannot be combined with a task id`)
}

interface Look {
  readonly data: object
  readonly text: string
  /** A note for a truncated list. */
  readonly more: string | undefined
  readonly tasks: readonly TaskSummary[]
  /** The task that is shown, if one was named. */
  readonly task: TaskView | undefined
}

async function look(client: BatonClient, given: Arguments, signal?: AbortSignal): Promise<Look> {
  const [taskId] = given.operands
  if (taskId !== undefined) {
    const task = await client.task(taskId, { signal })
    return { data: task, text: taskView(task), more: undefined, tasks: [task], task }
  }
  const state = given.text('state') as TaskState | undefined
  const chosen = { state, parked: given.switch('parked'), search: given.text('search'), signal }
  const { rows: found, next } = await readPages('tasks', (page) => client.tasks({ ...chosen, ...page }), {
    cursor: given.text('cursor'),
    limit: given.numberOrDefault('limit'),
  })
  const text = found.length === 0 ? noneText(given) : taskTable(found)
  const more = next === null ? undefined : moreText('--limit, --state or --search', next)
  return { data: { tasks: found, next }, text, more, tasks: found, task: undefined }
}

function noneText(given: Arguments): string {
  const isChosen = ['state', 'parked', 'search', 'cursor'].some((flag) => given.text(flag) !== undefined)
  return isChosen ? 'no task matches' : 'no tasks yet'
}

async function once(given: Arguments): Promise<number> {
  const { data, text, more } = await look(connect(given), given)
  answer(given, data, () => text, more)
  return exitCodes.ok
}

async function watch(given: Arguments, signal: AbortSignal): Promise<number> {
  const client = connect(given, { retryForSeconds: 0 })
  const intervalMillis = given.numberOrDefault('interval') * 1000
  // If the reader of the output ends first, it is not known that the task is done.
  if (given.operands.length > 0) process.exitCode = exitCodes.refused
  const screen = !given.switch('json') && process.stdout.isTTY ? new Redrawn(process.stdout) : undefined
  const changes = new Changes()
  let shown = ''
  let isAway = false
  const show = ({ data, text, more, tasks: seen }: Look) => {
    shown = [text, ...(more === undefined ? [] : [more])].join('\n')
    const changed = changes.since(seen)
    if (screen !== undefined) screen.draw(shown)
    else if (given.switch('json')) {
      if (changed.length > 0) printJson(data)
    } else for (const task of changed) print(taskLine(task))
  }
  try {
    while (true) {
      try {
        const seen = await look(client, given, signal)
        isAway = false
        show(seen)
        const ending = seen.task === undefined ? undefined : endingOf(seen.task)
        if (ending?.flaw !== undefined) remark(given, ending.flaw)
        if (ending !== undefined) return ending.exitCode
      } catch (error) {
        if (!(error instanceof BatonError) || !error.retryable) throw error
        if (screen !== undefined) screen.draw(`${shown}\n${styled('red', error.message)}`)
        else if (!isAway) remark(given, `${error.message}; retrying until the service is available`)
        isAway = true
      }
      await pause(intervalMillis, undefined, { signal })
    }
  } catch (error) {
    // Ctrl-C is the normal end of watching.
    if (signal.aborted && given.operands.length === 0) return exitCodes.ok
    throw signal.aborted ? signal.reason : error
  } finally {
    screen?.end()
  }
}
