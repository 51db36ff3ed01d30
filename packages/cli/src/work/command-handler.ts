import { setTimeout as pause } from 'node:timers/promises'
import {
  type BatonClient,
  type Handler,
  type HandlingContext,
  type HandlingOutcome,
  type PulledPartition,
  Released,
} from '@baton/client'
import { commandExitCodes } from '../errors.ts'
import {
  type CommandEnd,
  CommandUnusable,
  type Report,
  type ReportFiles,
  runCommand,
  type StderrSink,
} from './command-run.ts'
import { type WorkFilePaths, WorkFiles } from './work-files.ts'

/** The number of partitions whose releases are counted. The oldest are evicted. */
const REMEMBERED = 10_000

/** Counts how often in a row this worker has released each partition. */
class GiveBacks {
  readonly #limit: number
  readonly #counts = new Map<string, number>()

  constructor(limit: number) {
    this.#limit = limit
  }

  /** Counts another release. Returns true if it exceeds the limit. */
  isTooMany(partition: string): boolean {
    const count = (this.#counts.get(partition) ?? 0) + 1
    this.#counts.delete(partition)
    if (count > this.#limit) return true
    this.#counts.set(partition, count)
    const [oldest] = this.#counts.keys()
    if (this.#counts.size > REMEMBERED && oldest !== undefined) this.#counts.delete(oldest)
    return false
  }

  forget(partition: string): void {
    this.#counts.delete(partition)
  }
}

interface CommandHandlerOptions {
  readonly client: BatonClient
  readonly url: string
  readonly command: readonly string[]
  readonly doNotRetryCode: number
  /** How often in a row a command may release a partition. */
  readonly giveBackLimit: number
  readonly killAfterMillis: number
  readonly reports: ReportFiles
  readonly complain: (partition: PulledPartition, text: string) => void
  /** Receives the stderr of the command for a partition. */
  readonly stderrOf: (partition: PulledPartition) => StderrSink
  /** Whether the worker is stopping. */
  readonly isStopping: () => boolean
  /** Called if the command cannot be run at all. */
  readonly onUnusable: (error: CommandUnusable) => void
}

/** A handler that runs a command for each partition. */
export function commandHandler(options: CommandHandlerOptions): Handler {
  const { client, command, reports, killAfterMillis, complain, onUnusable } = options
  const [program = '', ...args] = command
  const giveBacks = new GiveBacks(options.giveBackLimit)
  return async (partition, context) => {
    const reportPath = await reports.next()
    const { signal } = context
    const files = { checkpoint: `${reportPath}.checkpoint`, progress: `${reportPath}.progress` }
    let work: WorkFiles | undefined
    try {
      work = await WorkFiles.open(files, context, (text) => complain(partition, text)).catch((error) => {
        throw new CommandUnusable(program, error)
      })
      const end = await runCommand({
        command: program,
        args,
        env: {
          ...ownVariables(),
          ...variablesOf(partition, context, options.url),
          ...fileVariables(reportPath, files),
        },
        input: `${JSON.stringify(client.tableField.describe(partition))}\n`,
        stderr: options.stderrOf(partition),
        signal,
        killAfterMillis,
      })
      const report = await reports.take(reportPath, (text) => complain(partition, text))
      // The command was ended by the abort, so it is neither done nor failed. If it still exited with
      // success, it is done.
      if (signal.aborted && end.code !== commandExitCodes.done) throw signal.reason
      if (await endedWithWorker(end, options.isStopping)) {
        throw new Released(`stopped by ${end.signal}, together with the worker`)
      }
      const outcome = outcomeOf(end, report, options.doNotRetryCode)
      return bounded(outcome, partition.partition_name, giveBacks, options.giveBackLimit)
    } catch (error) {
      if (!(error instanceof CommandUnusable)) throw error
      onUnusable(error)
      return { outcome: 'released', reason: error.message }
    } finally {
      await work?.end()
    }
  }
}

const askingToEnd: readonly (NodeJS.Signals | null)[] = ['SIGINT', 'SIGTERM', 'SIGHUP']
const SAME_MOMENT_MILLIS = 250

/**
 * Some supervisors signal all processes of a service, and a Ctrl-C can reach a command that has not left the
 * terminal's process group yet. That is not a failure of the command. Either process may get the signal
 * first, so wait a moment for the worker's.
 */
async function endedWithWorker({ signal }: CommandEnd, isStopping: () => boolean): Promise<boolean> {
  if (!askingToEnd.includes(signal)) return false
  if (!isStopping()) await pause(SAME_MOMENT_MILLIS)
  return isStopping()
}

/**
 * The environment of this process without the token: it belongs to the worker, and programs print their
 * environment in logs and crash reports. A token from the flag is not passed on either.
 */
function ownVariables(): NodeJS.ProcessEnv {
  const { BATON_TOKEN: _, ...others } = process.env
  return others
}

/** The descriptor and the lease as environment variables, for programs that do not parse JSON. */
function variablesOf(
  partition: PulledPartition,
  { lease, attempt }: HandlingContext,
  url: string,
): Record<string, string> {
  return {
    BATON_URL: url,
    BATON_TASK_ID: partition.taskId,
    BATON_COMPUTE_TABLE_NAME: partition.computeTableName,
    BATON_PARTITION_NAME: partition.partition_name,
    BATON_RECORD_COUNT: String(partition.record_count),
    BATON_PRIORITY_LEVEL: String(partition.priorityLevel),
    BATON_ATTEMPT: String(attempt),
    BATON_LEASE_ID: lease?.id ?? '',
    BATON_FENCING_TOKEN: String(lease?.fencingToken ?? ''),
    ...(partition.traceparent === undefined ? {} : { TRACEPARENT: partition.traceparent }),
  }
}

const fileVariables = (report: string, { checkpoint, progress }: WorkFilePaths): Record<string, string> => ({
  BATON_REPORT: report,
  BATON_CHECKPOINT_FILE: checkpoint,
  BATON_PROGRESS_FILE: progress,
})

function outcomeOf(end: CommandEnd, report: Report, doNotRetryCode: number): HandlingOutcome {
  const { code } = end
  const { records, retryAfterSeconds } = report
  const timing = retryAfterSeconds === undefined ? {} : { retryAfterSeconds }
  if (code === commandExitCodes.done) return records === undefined ? {} : { records }
  const reason = report.reason ?? reasonOf(end)
  if (code === commandExitCodes.release) return { outcome: 'released', reason, ...timing }
  return { outcome: 'failed', reason, final: code === doNotRetryCode, ...timing }
}

/**
 * A command that releases a partition forever would go unnoticed. Above the limit, a release becomes a
 * failure.
 */
function bounded(
  outcome: HandlingOutcome,
  name: string,
  giveBacks: GiveBacks,
  limit: number,
): HandlingOutcome {
  if (outcome.outcome !== 'released') {
    giveBacks.forget(name)
    return outcome
  }
  if (!giveBacks.isTooMany(name)) return outcome
  const { reason = '', ...timing } = outcome
  return { ...timing, outcome: 'failed', reason: `released more than ${limit} times in a row: ${reason}` }
}

function reasonOf({ code, signal, stderr }: CommandEnd): string {
  const how = code === null ? `stopped by ${signal}` : `exit code ${code}`
  return stderr === '' ? how : `${how}: ${stderr}`
}
