import { accessSync, constants, statSync } from 'node:fs'
import { hostname } from 'node:os'
import { delimiter, join } from 'node:path'
import { Worker } from '@baton/client'
import { MAX_WAIT_SECONDS } from '@baton/protocol/core'
import { type Arguments, type Command, LONGEST_TIMER_SECONDS } from '../command-line.ts'
import { connect, placeFlags, urlOf } from '../connection.ts'
import { commandExitCodes, exitCodes, UsageError } from '../errors.ts'
import { counted } from '../show/numbers.ts'
import { remark, shown } from '../terminal.ts'
import { commandHandler } from '../work/command-handler.ts'
import { CommandUnusable, ReportFiles } from '../work/command-run.ts'
import { EventLog } from '../work/event-log.ts'
import { chosenFlags, chosenIn } from './leases.ts'

/**
 * Throws if the command cannot be run, before anything is pulled for it. Not checked on Windows, which has
 * its own rules for executable files.
 */
function checkCommand(command: string): void {
  if (process.platform === 'win32') return
  if (command.includes('/')) {
    const fault = faultOf(command)
    if (fault !== undefined) throw new CommandUnusable(command, fault)
    return
  }
  let fault: NodeJS.ErrnoException | undefined
  for (const folder of (process.env['PATH'] ?? '').split(delimiter)) {
    const found = faultOf(join(folder === '' ? '.' : folder, command))
    if (found === undefined) return
    // Prefer the error of a file that exists but cannot be executed over a missing file.
    if (found.code !== 'ENOENT' && found.code !== 'ENOTDIR') fault ??= found
  }
  throw new CommandUnusable(command, fault ?? Object.assign(new Error('not found'), { code: 'ENOENT' }))
}

function faultOf(path: string): NodeJS.ErrnoException | undefined {
  try {
    accessSync(path, constants.X_OK)
    // For a directory, the execute permission means that it may be entered.
    return statSync(path).isFile() ? undefined : Object.assign(new Error('not a file'), { code: 'EACCES' })
  } catch (error) {
    return error as NodeJS.ErrnoException
  }
}

export const work: Command = {
  operands: '-- COMMAND [ARGUMENTS]',
  operandCount: [0, 0],
  takesCommand: true,
  details: `Runs a command once per partition. Without --table or --task it takes partitions of every table and task of the
service, also those of other teams: name the tables that the command can process.

The command receives the descriptor on stdin, as a line of JSON, and in its
environment: BATON_TASK_ID, BATON_COMPUTE_TABLE_NAME, BATON_PARTITION_NAME, BATON_RECORD_COUNT,
BATON_PRIORITY_LEVEL, BATON_ATTEMPT, BATON_LEASE_ID, BATON_FENCING_TOKEN. If the call-back had a trace, TRACEPARENT
continues it. If the service keeps additional fields, the line of JSON includes them.

The exit code is the outcome:
  ${String(commandExitCodes.done).padStart(3)}    done
  ${String(commandExitCodes.release).padStart(3)}    released: another worker or a later attempt; does not count as an attempt, up to --give-back-limit
  ${String(commandExitCodes.doNotRetry).padStart(3)}    failed, do not retry: the partition is parked
  other  failed, retried later. The end of stderr is stored as the reason
BATON_CHECKPOINT_FILE names a file with what the last worker of the partition saved; what the command writes to it is
saved for the next one. BATON_PROGRESS_FILE names a file for {"records": N, "note": "…"}, which is shown meanwhile.
The command can write {"records": N, "reason": "…", "retryAfterSeconds": N} to the file named by BATON_REPORT.

Leases are renewed while commands run. When a lease is lost, its command receives SIGTERM, and SIGKILL if it does not
exit. Ctrl-C lets running commands finish; a second Ctrl-C stops them and releases their partitions.`,
  flags: {
    concurrency: {
      kind: 'number',
      short: 'c',
      placeholder: 'N',
      minimum: 1,
      maximum: 10_000,
      default: 1,
      description: 'number of commands that run concurrently',
    },
    ...chosenFlags,
    records: {
      kind: 'number',
      placeholder: 'N',
      minimum: 1,
      otherwise: 'no limit',
      description: 'maximum number of records in progress; one partition is always allowed',
    },
    wait: {
      kind: 'number',
      placeholder: 'SECONDS',
      maximum: MAX_WAIT_SECONDS,
      otherwise: '20, and 0 with --until-idle',
      description: 'how long a pull waits if no partition is ready',
    },
    'until-idle': {
      kind: 'switch',
      description:
        'exit when no partition is ready, with --wait after waiting for one; exits with 1 if a partition failed',
    },
    'drain-seconds': {
      kind: 'number',
      placeholder: 'SECONDS',
      fractions: true,
      maximum: LONGEST_TIMER_SECONDS,
      otherwise: 'as long as their leases',
      description: 'how long commands can continue after a SIGTERM',
    },
    'kill-after': {
      kind: 'number',
      placeholder: 'SECONDS',
      fractions: true,
      maximum: LONGEST_TIMER_SECONDS,
      default: 10,
      description: 'time between SIGTERM and SIGKILL for a command that must stop',
    },
    'do-not-retry-code': {
      kind: 'number',
      placeholder: 'CODE',
      minimum: 1,
      maximum: 255,
      default: commandExitCodes.doNotRetry,
      description: 'exit code of a command that must not be retried',
    },
    'give-back-limit': {
      kind: 'number',
      placeholder: 'N',
      minimum: 1,
      default: 20,
      description: `how often in a row a partition can be released with exit code ${commandExitCodes.release} before it fails`,
    },
    quiet: { kind: 'switch', short: 'q', description: 'log nothing' },
    ...placeFlags,
    json: { kind: 'switch', description: 'log events as lines of JSON, on stderr' },
  },
  examples: [
    { line: 'baton work --concurrency 4 -- ./load.sh', says: 'Four concurrent commands' },
    {
      line: `baton work -- sh -c 'psql -v name="$BATON_PARTITION_NAME" -f load.sql'`,
      says: 'A shell command',
    },
    { line: 'baton work --table results.orders -- ./load-orders.sh', says: 'Partitions of one table only' },
    {
      line: 'baton work --until-idle -- python load.py',
      says: 'From cron: process all ready partitions, then exit',
    },
  ],
  run,
}

async function run(given: Arguments): Promise<number> {
  if (given.command.length === 0)
    throw new UsageError('work requires a command: baton work -- COMMAND [ARGUMENTS]')
  const chosen = chosenIn(given)
  try {
    checkCommand(given.command[0] ?? '')
  } catch (error) {
    if (!(error instanceof CommandUnusable)) throw error
    remark(given, `${error.message}; nothing was pulled`)
    return codeOf(error)
  }
  const log = new EventLog(given.switch('json') ? 'json' : given.switch('quiet') ? 'nothing' : 'lines')
  const instanceId = given.text('instance-id') ?? `${hostname()}-${process.pid}`
  // The worker has its own retries.
  const client = connect(given, { instanceId, retryForSeconds: 0 })
  const killAfterSeconds = given.numberOrDefault('kill-after')
  let unusable: CommandUnusable | undefined
  await using reports = await ReportFiles.open()
  const handler = commandHandler({
    client,
    url: urlOf(given),
    command: given.command,
    doNotRetryCode: given.numberOrDefault('do-not-retry-code'),
    giveBackLimit: given.numberOrDefault('give-back-limit'),
    killAfterMillis: killAfterSeconds * 1000,
    reports,
    complain: ({ partition_name }, text) => log.say(`${shown(partition_name)}: ${text}`),
    stderrOf: (partition) => log.stderrOf(partition),
    isStopping: () => worker.isStopping,
    onUnusable: (error) => {
      unusable ??= error
      void worker.stop({ finishWithinSeconds: 0 })
    },
  })
  const records = given.number('records')
  const waitSeconds = given.number('wait')
  const worker = new Worker(client, handler, {
    concurrency: given.numberOrDefault('concurrency'),
    untilIdle: given.switch('until-idle'),
    onEvent: log.tell,
    ...chosen,
    ...(waitSeconds === undefined ? {} : { waitSeconds }),
    ...(records === undefined ? {} : { recordBudget: records }),
  })
  using signals = new StopSignals({
    worker,
    killAfterSeconds,
    drainSeconds: () => given.number('drain-seconds') ?? log.longestLeaseSeconds,
    takesBack: () => log.takesBack,
    unsettled: () => log.unsettled,
    say: (text) => log.say(text),
  })
  log.say(`taking partitions of ${choiceText(chosen)}`)
  await worker.run()
  if (unusable !== undefined) {
    const partition = log.takesBack
      ? 'its partition was released'
      : 'its partition cannot be released: the service counts it as done'
    log.say(`${unusable.message}; ${partition}`)
    return codeOf(unusable)
  }
  const { done, failed, released, lost } = log.counts
  log.say(`${counted(done, 'partition')} done, ${failed} failed, ${released} released, ${lost} lost`)
  const untilIdle = given.switch('until-idle')
  if (untilIdle && failed + lost > 0) return exitCodes.refused
  // A graceful stop is the normal end of a worker, with exit code 0. It is not if commands were ended early,
  // or with --until-idle, because the worker was stopped before it became idle.
  return signals.wasHurried || untilIdle ? (signals.endedBy ?? exitCodes.ok) : exitCodes.ok
}

function choiceText({ tables = [], tasks = [] }: ReturnType<typeof chosenIn>): string {
  const names = (kind: string, all: readonly string[]) =>
    all.length === 0
      ? `every ${kind}`
      : `the ${kind}${all.length === 1 ? '' : 's'} ${all.map(shown).join(', ')}`
  const advice = tables.length + tasks.length === 0 ? '; --table and --task choose some' : ''
  return `${names('table', tables)} and ${names('task', tasks)}${advice}`
}

const codeOf = ({ code }: CommandUnusable): number =>
  code === 'ENOENT' ? exitCodes.notFound : exitCodes.notExecutable

interface StopSignalsOptions {
  readonly worker: Worker
  readonly drainSeconds: () => number
  /** The time between SIGTERM and SIGKILL for commands. */
  readonly killAfterSeconds: number
  /** Whether the service accepts released partitions. */
  readonly takesBack: () => boolean
  /** The number of partitions that are in progress or not reported yet. */
  readonly unsettled: () => number
  readonly say: (text: string) => void
}

/** The time to release leases after the commands have ended. */
const GIVE_BACK_SECONDS = 5

/**
 * The first Ctrl-C lets commands finish without a time limit, because the user can press it again. The second
 * ends the commands and releases their partitions. The third exits at once. A SIGTERM comes from a
 * supervisor, which will not wait forever, so the time to finish is limited.
 */
class StopSignals implements Disposable {
  readonly #options: StopSignalsOptions
  readonly #listeners: readonly (readonly [NodeJS.Signals, () => void])[]
  #interrupts = 0
  /** The exit code that shells expect after this signal. `undefined` without a signal. */
  endedBy: number | undefined
  /** Whether commands were ended before they could finish, by a second Ctrl-C. */
  wasHurried = false

  constructor(options: StopSignalsOptions) {
    this.#options = options
    this.#listeners = [
      ['SIGINT', () => this.#interrupt()],
      ['SIGTERM', () => this.#terminate()],
      ['SIGHUP', () => this.#terminate()],
    ]
    for (const [signal, listener] of this.#listeners) process.on(signal, listener)
  }

  [Symbol.dispose](): void {
    for (const [signal, listener] of this.#listeners) process.off(signal, listener)
  }

  #interrupt(): void {
    const { worker, takesBack, unsettled, say } = this.#options
    this.#interrupts += 1
    this.endedBy ??= exitCodes.interrupted
    if (this.#interrupts === 1) {
      if (worker.running > 0) {
        const then = takesBack()
          ? 'releases their partitions'
          : 'loses their partitions, which the service counts as done'
        say(`finishing ${counted(worker.running, 'partition')}; Ctrl-C again stops the commands and ${then}`)
      } else if (unsettled() > 0) {
        say(`reporting ${counted(unsettled(), 'result')}; Ctrl-C again gives up`)
      }
      void worker.stop({ finishWithinSeconds: Number.POSITIVE_INFINITY })
    } else if (this.#interrupts === 2) {
      say(
        takesBack()
          ? 'stopping commands and releasing their partitions'
          : 'stopping commands; their partitions cannot be released: the service counts them as done',
      )
      this.endedBy = exitCodes.interrupted
      this.wasHurried = true
      this.#stopWithin(0)
    } else process.exit(exitCodes.interrupted)
  }

  #terminate(): void {
    const { worker, say } = this.#options
    const drainSeconds = this.#options.drainSeconds()
    this.endedBy ??= exitCodes.terminated
    say(`stopping: ${counted(worker.running, 'partition')} can finish within ${drainSeconds} s`)
    this.#stopWithin(drainSeconds)
  }

  #stopWithin(finishWithinSeconds: number): void {
    const releaseWithinSeconds = this.#options.killAfterSeconds + GIVE_BACK_SECONDS
    void this.#options.worker.stop({ finishWithinSeconds, releaseWithinSeconds })
  }
}
