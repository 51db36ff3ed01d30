import { StringDecoder } from 'node:string_decoder'
import type { PulledPartition, WorkerEvent } from '@baton/client'
import { counted, duration } from '../show/numbers.ts'
import { jsonLine, note, passOn, shown, styled } from '../terminal.ts'
import type { StderrSink } from './command-run.ts'

/** Splits a stream of bytes into lines. A line of more than `longest` characters is split into pieces. */
export class LineCutter {
  readonly #longest: number
  readonly #tell: (line: string) => void
  readonly #decoder = new StringDecoder('utf8')
  #rest = ''

  constructor(longest: number, tell: (line: string) => void) {
    this.#longest = longest
    this.#tell = tell
  }

  add(bytes: Buffer): void {
    const lines = (this.#rest + this.#decoder.write(bytes)).split('\n')
    this.#rest = lines.pop() ?? ''
    for (const line of lines) this.#tellAll(line)
    while (this.#rest.length > this.#longest) {
      this.#tell(this.#rest.slice(0, this.#longest))
      this.#rest = this.#rest.slice(this.#longest)
    }
  }

  /** A last line without a line break counts. */
  end(): void {
    const last = this.#rest + this.#decoder.end()
    this.#rest = ''
    if (last !== '') this.#tellAll(last)
  }

  #tellAll(line: string): void {
    for (let at = 0; at === 0 || at < line.length; at += this.#longest) {
      this.#tell(line.slice(at, at + this.#longest))
    }
  }
}

/** The longest line of a command's output, because a reader of JSON lines has to buffer a whole line. */
const LONGEST_LINE = 8192

/** With at-most-once delivery there is no lease; then as long as a lease is by default. */
const WITHOUT_LEASE_SECONDS = 300

/** Logs the events of a worker to stderr, as text or JSON. */
export class EventLog {
  readonly #form: 'lines' | 'json' | 'nothing'
  readonly counts = { done: 0, failed: 0, released: 0, lost: 0 }
  /** Partitions that were started and not settled. */
  readonly #unsettled = new Set<PulledPartition>()
  #takesBack = true

  constructor(form: 'lines' | 'json' | 'nothing') {
    this.#form = form
  }

  /** Whether partitions can be released. Not if the service delivers at most once and counts them as done. */
  get takesBack(): boolean {
    return this.#takesBack
  }

  /** The number of partitions whose command runs, or whose result was not reported yet. */
  get unsettled(): number {
    return this.#unsettled.size
  }

  /** The length of the longest lease of these partitions. */
  get longestLeaseSeconds(): number {
    const leases = [...this.#unsettled].map(({ lease }) => lease?.expiresInSeconds ?? WITHOUT_LEASE_SECONDS)
    return Math.ceil(Math.max(0, ...leases))
  }

  readonly tell = (event: WorkerEvent): void => {
    if (event.kind === 'started') this.#unsettled.add(event.partition)
    else if (endKinds.has(event.kind) && 'partition' in event) this.#unsettled.delete(event.partition)
    if (event.kind === 'pulled') this.#takesBack = event.partitions.every(({ lease }) => lease !== null)
    if (event.kind === 'unreported') this.counts[unreportedAs[event.outcome]] += 1
    if (event.kind === 'settled') this.counts[event.outcome] += 1
    if (event.kind === 'lost' || event.kind === 'refused') this.counts.lost += 1
    if (this.#form === 'json') noteJson(plain(event))
    if (this.#form !== 'lines') return
    const line = lineOf(event, this.#takesBack)
    if (line !== undefined) this.say(line)
  }

  say(text: string): void {
    if (this.#form === 'lines') note(`${styled('dim', timeOfDay(), process.stderr)} ${text}`)
    if (this.#form === 'json') noteJson({ kind: 'note', text })
  }

  /** The stderr of a command goes to the same stream: unchanged, or as lines of JSON. */
  stderrOf({ taskId, partition_name }: PulledPartition): StderrSink {
    if (this.#form === 'json') {
      return new LineCutter(LONGEST_LINE, (text) =>
        noteJson({ kind: 'stderr', taskId, partition_name, text }),
      )
    }
    return { add: passOn, end: () => {} }
  }
}

const endKinds: ReadonlySet<WorkerEvent['kind']> = new Set(['settled', 'refused', 'lost', 'unreported'])

function noteJson(event: object): void {
  note(jsonLine({ at: new Date().toISOString(), ...event }))
}

function timeOfDay(): string {
  return new Date().toTimeString().slice(0, 8)
}

/** A partition without a lease cannot be released, and is not handed out again. */
const unreportedAs = { done: 'done', failed: 'failed', released: 'lost' } as const
const unreportedWords = { done: 'done', failed: 'failed permanently', released: 'lost' } as const

const colours = { done: 'green', failed: 'red', released: 'yellow' } as const
const coloured = (style: 'green' | 'red' | 'yellow', text: string) => styled(style, text, process.stderr)

function lineOf(event: WorkerEvent, takesBack: boolean): string | undefined {
  switch (event.kind) {
    case 'started': {
      const { partition_name, record_count, lease } = event.partition
      const attempt = (lease?.attempt ?? 1) > 1 ? `, attempt ${lease?.attempt}` : ''
      return `${shown(partition_name)} started (${counted(record_count, 'record')}${attempt})`
    }
    case 'settled':
      return endLine(event, coloured(colours[event.outcome], settledWords(event)))
    case 'unreported': {
      const { outcome } = event
      return endLine(event, coloured(outcome === 'done' ? 'green' : 'red', unreportedWords[outcome]))
    }
    case 'refused':
      return `${shown(event.partition.partition_name)} ${coloured('red', 'refused')}: ${event.detail}`
    case 'lost':
      return `${shown(event.partition.partition_name)} ${coloured('red', 'lease lost')}: ${event.error.message}`
    case 'away':
      return coloured('yellow', `${event.error.message}; retrying in ${duration(event.pauseMillis / 1000)}`)
    case 'back':
      return coloured('green', `the service is available again after ${duration(event.awayMillis / 1000)}`)
    case 'stopped':
      return event.abandoned === 0 ? undefined : coloured('red', abandonedText(event.abandoned, takesBack))
    default:
      return undefined
  }
}

/** Commands may have finished without the service knowing it, so someone may want to look at their results. */
function abandonedText(abandoned: number, takesBack: boolean): string {
  const then = takesBack
    ? 'the service hands them out again when their leases expire'
    : 'the service counts them as done'
  return `not settled: ${counted(abandoned, 'partition')}; ${then}`
}

/** Says whether the partition is retried or parked: a failure that is retried needs no action. */
function settledWords({ outcome, parked }: Extract<WorkerEvent, { kind: 'settled' }>): string {
  if (outcome === 'done') return 'done'
  if (outcome === 'released') return 'released'
  return parked ? 'failed, parked' : 'failed, will be retried'
}

function endLine(event: Extract<WorkerEvent, { kind: 'settled' | 'unreported' }>, word: string): string {
  const took = event.millis > 0 ? ` after ${duration(event.millis / 1000)}` : ''
  const why = event.reason === undefined ? '' : `: ${shown(event.reason.split('\n').at(-1) ?? '')}`
  return `${shown(event.partition.partition_name)} ${word}${took}${why}`
}

/** JSON omits the fields of errors. */
function plain(event: WorkerEvent): object {
  if (!('error' in event) || !(event.error instanceof Error)) return event
  const { name, message } = event.error
  return { ...event, error: { name, message } }
}
