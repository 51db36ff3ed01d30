import { createInterface } from 'node:readline'
import type { BatonClient, ControlAnswer, TaskView } from '@baton/client'
import { parsePartitionName } from '@baton/protocol/core'
import type { Arguments, Command, Example, Flags } from '../command-line.ts'
import { connect, connectionFlags, located } from '../connection.ts'
import { exitCodes, Interruption, UsageError } from '../errors.ts'
import { count } from '../show/numbers.ts'
import { answer, note, remark, safe, shown } from '../terminal.ts'

/** How many of the expected partitions do not exist. Undefined if none is missing. */
export function missingText({ expectedPartitions, missingPartitions }: TaskView): string | undefined {
  if (expectedPartitions === null || !missingPartitions) return undefined
  return `${count(missingPartitions)} of ${count(expectedPartitions)} partitions`
}

interface QuestionStreams {
  readonly input: NodeJS.ReadableStream
  readonly output: NodeJS.WritableStream
}

/**
 * Prompts for a confirmation. Ending the input with Ctrl-D means no. Ctrl-C throws an Interruption: during a
 * prompt, readline receives it as a key, and the process gets no signal.
 */
export function confirmed(question: string, streams: QuestionStreams): Promise<boolean> {
  const terminal = createInterface({ ...streams, terminal: true })
  const { promise, resolve, reject } = Promise.withResolvers<boolean>()
  const unanswered = () => {
    // Start the next output on a new line.
    streams.output.write('\n')
  }
  terminal.question(`${safe(question)} [y/N] `, (answer) => resolve(/^y(es)?$/i.test(answer.trim())))
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

export const yesFlag = {
  yes: { kind: 'switch', short: 'y', description: 'do not ask for confirmation; required in scripts' },
} satisfies Flags

/**
 * Prompts for a confirmation unless --yes is given. Returns the exit code for a no, and undefined for a yes.
 * Without a terminal it throws: an action that cannot be undone needs an explicit yes.
 */
export async function agreed(question: string, given: Arguments): Promise<number | undefined> {
  if (given.switch('yes')) return undefined
  const { stdin, stderr } = process
  if (!stdin.isTTY || !stderr.isTTY) {
    throw new UsageError('this cannot be undone and there is no terminal for the confirmation; add --yes')
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

interface Verb {
  readonly operands?: string
  readonly details: string
  readonly flags?: Flags
  readonly examples: readonly Example[]
  /** The confirmation prompt of an action that cannot be undone. */
  readonly question?: string
  /** Translates a pointer into the request to a part of the command line. */
  readonly placeOf?: (pointer: string, given: Arguments) => string | undefined
  /** Describes the effect of the action, if the state of the task does not show it. */
  readonly result?: (given: Arguments) => string
  readonly act: (client: BatonClient, taskId: string, given: Arguments) => Promise<ControlAnswer>
  /** A warning to print after the action succeeded. */
  readonly caution?: (client: BatonClient, taskId: string, given: Arguments) => Promise<string | undefined>
}

const verbs: Readonly<Record<string, Verb>> = {
  pause: {
    details: 'Stops handing out partitions of a task. Live leases stay valid and can be settled.',
    examples: [{ line: 'baton pause orders-2026-03', says: 'Stop handing out partitions' }],
    act: (client, taskId) => client.pause(taskId),
  },
  resume: {
    details: 'Ends a pause. Waiting workers get partitions at once.',
    examples: [{ line: 'baton resume orders-2026-03', says: 'Hand out partitions again' }],
    act: (client, taskId) => client.resume(taskId),
  },
  cancel: {
    details:
      'Cancels every partition of a task that is not done. Its leases are lost. This cannot be undone.',
    flags: yesFlag,
    examples: [{ line: 'baton cancel orders-2026-03 --yes', says: 'In a script' }],
    question: 'Cancel every partition that is not done? This cannot be undone.',
    act: (client, taskId) => client.cancel(taskId),
  },
  retry: {
    details:
      'Retries parked partitions with new attempts: all of a task, one level, one reason, or by name.\n' +
      '`baton tasks TASK` shows what is parked for which reason.',
    flags: {
      level: { kind: 'number', placeholder: 'N', description: 'only this level' },
      partition: {
        kind: 'text',
        placeholder: 'NAMES',
        repeatable: true,
        description: 'only these partitions, separated by commas, or one flag per partition',
      },
      reason: { kind: 'text', placeholder: 'KEY', description: 'only what is parked for this reason' },
      done: {
        kind: 'switch',
        description: 'also run done partitions again; the request is sent once unless --timeout is set',
      },
    },
    examples: [
      { line: 'baton retry orders-2026-03', says: 'All parked partitions' },
      {
        line: 'baton retry orders-2026-03 --reason compute-table-is-locked-0mofb80',
        says: 'Those that are parked for one reason',
      },
      {
        line: 'baton retry orders-2026-03 --partition orders-2026-03-0-7 --done',
        says: 'One done partition with wrong results',
      },
    ],
    placeOf: (pointer, given) => {
      if (pointer === '/level' || pointer === '/reason') return `--${pointer.slice(1)}`
      const position = /^\/partitions\/(\d+)$/.exec(pointer)?.[1]
      return position === undefined ? undefined : namesOf(given)[Number(position)]
    },
    act: (client, taskId, given) => {
      const level = given.number('level')
      const partitions = namesOf(given)
      const reason = given.text('reason')
      const which = {
        ...(level === undefined ? {} : { level }),
        ...(partitions.length === 0 ? {} : { partitions }),
        ...(given.switch('done') ? { done: true } : {}),
        ...(reason === undefined ? {} : { reason }),
      }
      return client.retry(taskId, which, { retryForSeconds: given.number('timeout') })
    },
  },
  seal: {
    details:
      'Seals a task: from then on new partitions are refused. Repeated call-backs of known partitions are not.\n' +
      'With the total number of partitions, it shows how many are missing, and so does `baton tasks TASK`.',
    flags: {
      partitions: { kind: 'number', placeholder: 'N', description: 'total number of partitions of the task' },
      ...yesFlag,
    },
    examples: [
      {
        line: 'baton seal orders-2026-03 --partitions 42 --yes',
        says: 'A task with 42 partitions, in a script',
      },
    ],
    question: 'Refuse all new partitions from now on? This cannot be undone.',
    placeOf: (pointer) => (pointer === '/partitions' ? '--partitions' : undefined),
    result: (given) => {
      const partitions = given.number('partitions')
      return partitions === undefined ? 'sealed' : `sealed, ${count(partitions)} expected`
    },
    act: (client, taskId, given) => {
      const partitions = given.number('partitions')
      return client.seal(taskId, partitions === undefined ? {} : { partitions })
    },
    caution: async (client, taskId, given) =>
      given.number('partitions') === undefined ? undefined : lackingText(client, taskId),
  },
  'skip-parked': {
    details: 'Opens the level barrier of a task despite parked partitions on a lower level.',
    examples: [{ line: 'baton skip-parked orders-2026-03', says: 'Continue without them' }],
    act: (client, taskId) => client.skipParked(taskId),
  },
  owner: {
    operands: 'TASK NAME',
    details:
      'Gives a task to another producer, by the name of its token. Without this, a task belongs to the token\n' +
      'that first called it back.',
    examples: [
      {
        line: 'baton owner orders-2026-03 "orders compute"',
        says: 'Another token of that name may call it back',
      },
    ],
    placeOf: (pointer) => (pointer === '/name' ? 'NAME' : undefined),
    result: (given) => `owner ${shown(given.operands[1] ?? '')}`,
    act: (client, taskId, given) => client.changeOwner(taskId, given.operands[1] ?? ''),
  },
  'level-barrier': {
    operands: 'TASK on|off',
    details:
      'Enables or disables the level barrier: each level of the task waits until all lower levels are done.',
    examples: [{ line: 'baton level-barrier orders-2026-03 on', says: 'Hand out one level at a time' }],
    result: (given) => `level barrier ${given.operands[1]}`,
    act: (client, taskId, given) => {
      const [, word] = given.operands
      if (word !== 'on' && word !== 'off') throw new UsageError('level-barrier requires TASK and on or off')
      return client.levelBarrier(taskId, word === 'on')
    },
  },
}

/**
 * Sealing cannot be undone. Warn about missing partitions now, not after incomplete results are published.
 */
async function lackingText(client: BatonClient, taskId: string): Promise<string | undefined> {
  // The task is sealed already, so a failure of this request is not a failure of the command.
  const task = await client.task(taskId).catch(() => undefined)
  const missing = task === undefined ? undefined : missingText(task)
  if (missing === undefined) return undefined
  return (
    `${missing} were not called back, and the sealed task accepts no new partitions. ` +
    'If the expected number is wrong, seal the task again with the correct number.'
  )
}

/** A task id may contain commas, and then the names of its partitions do as well. */
function namesOf(given: Arguments): string[] {
  const taskId = given.operands[0] ?? ''
  const isName = (text: string) => parsePartitionName(taskId, text) !== undefined
  return given.texts('partition').flatMap((text) => (isName(text) ? [text] : text.split(',')))
}

export function controlCommand(name: string): Command {
  const verb = verbs[name]
  if (verb === undefined) throw new TypeError(`there is no control named ${name}`)
  const { operands = 'TASK', details, flags = {}, examples, question, placeOf, result, act, caution } = verb
  const operandCount = operands.split(' ').length
  return {
    operands,
    operandCount: [operandCount, operandCount],
    details,
    flags: { ...flags, ...connectionFlags },
    examples,
    run: async (given) => {
      const taskId = given.operands[0] ?? ''
      const refusal = question && (await agreed(`${shown(taskId)}: ${question}`, given))
      if (typeof refusal === 'number') return refusal
      const client = connect(given)
      // The user typed a command and never saw the request that the pointers refer to.
      const origin = { placeOf: (pointer: string) => placeOf?.(pointer, given) ?? '' }
      const done = await act(client, taskId, given).catch(located(origin))
      answer(given, done, () => outcomeText(done, result?.(given)))
      const warning = await caution?.(client, taskId, given)
      if (warning !== undefined) remark(given, warning)
      return exitCodes.ok
    },
  }
}

/**
 * An action on the task as a whole either changes it or not. For all other actions, `changed` counts
 * partitions.
 */
function outcomeText({ taskId, state, changed }: ControlAnswer, result: string | undefined): string {
  const task = `${shown(taskId)} is ${state}`
  if (result === undefined) return `${task} (${count(changed)} changed)`
  return `${task}, ${result}${changed === 0 ? ' (nothing changed)' : ''}`
}
