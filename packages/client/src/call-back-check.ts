import type {
  CallBack,
  CallBackOptions,
  CheckFailure,
  CallBackCheck as ContractCheck,
  Problem,
} from '@baton/protocol'
import { partitionName, ViolationList } from '@baton/protocol/core'

/**
 * Checks a call-back against the contract. The schemas are loaded on first use: loading them is slow, and
 * programs that only pull or read never need them.
 */
export async function checkAgainstContract(body: unknown, options: CallBackOptions): Promise<ContractCheck> {
  const { checkCallBack } = await import('@baton/protocol')
  // A call-back with more levels than one request may have is sent in several requests.
  return checkCallBack(body, { maxLevels: Number.POSITIVE_INFINITY, ...options })
}

/** The problem of a call-back that the check refused. The table of error codes is loaded with the schemas. */
export async function violation(found: CheckFailure, detail = DETAIL): Promise<Problem> {
  const { listedViolations, problem } = await import('@baton/protocol')
  return problem('contract_violation', detail, listedViolations(found))
}

const DETAIL = 'the descriptors violate the contract; see errors'

/**
 * The set of indexes seen so far, stored as ranges. Producers count upwards, so a level of ten million
 * partitions is one range and not ten million entries.
 */
export class SeenIndexes {
  /** Disjoint, ascending, never adjacent. */
  readonly #ranges: { first: number; last: number }[] = []

  /** Returns false if the index was already in the set. */
  add(index: number): boolean {
    const at = this.#firstEndingAtOrAfter(index)
    const next = this.#ranges[at]
    if (next !== undefined && next.first <= index) return false
    const previous = this.#ranges[at - 1]
    const joinsPrevious = previous !== undefined && previous.last + 1 === index
    const joinsNext = next !== undefined && next.first - 1 === index
    if (joinsPrevious && joinsNext) {
      previous.last = next.last
      this.#ranges.splice(at, 1)
    } else if (joinsPrevious) previous.last = index
    else if (joinsNext) next.first = index
    else this.#ranges.splice(at, 0, { first: index, last: index })
    return true
  }

  #firstEndingAtOrAfter(index: number): number {
    const ranges = this.#ranges
    const newest = ranges.at(-1)
    if (newest === undefined || newest.last < index) return ranges.length
    let low = 0
    let high = ranges.length - 1
    while (low < high) {
      const middle = (low + high) >> 1
      if ((ranges[middle]?.last ?? 0) < index) low = middle + 1
      else high = middle
    }
    return low
  }
}

/**
 * Checks a call-back that arrives in pieces against the contract, including the rules across pieces: one
 * task, ascending levels, distinct partitions, an exact record total. Pointers count from the first piece.
 */
export class CallBackCheck {
  readonly #options: CallBackOptions
  #offset = 0
  #taskId: string | undefined
  #level = 0
  #recordTotal = 0
  /** Indexes of the current level. Levels ascend, so lower levels cannot occur again. */
  #indexes = new SeenIndexes()

  constructor(options: CallBackOptions) {
    this.#options = options
  }

  /** Checks the next piece, in wire form. Returns the problem, if there is one. */
  async take(piece: readonly unknown[]): Promise<Problem | undefined> {
    const checked = await checkAgainstContract(piece, this.#options)
    const offset = this.#offset
    this.#offset += piece.length
    if (!checked.ok) return rebased(await violation(checked), offset)
    const violations = new ViolationList()
    this.#across(checked.callBack, violations)
    if (violations.isEmpty) return undefined
    return rebased(await violation(violations.failure()), offset)
  }

  /** Finds every descriptor of this piece that breaks a rule across pieces. */
  #across({ taskId, recordTotal, partitions }: CallBack, found: ViolationList): void {
    const first = this.#taskId ?? taskId
    this.#taskId = first
    if (taskId !== first) {
      found.add(
        '/0/taskId',
        () =>
          `taskId must be the same in all descriptors: the first has ${quoted(first)}, this one has ${quoted(taskId)}`,
      )
      return
    }
    const wasWithinBounds = this.#recordTotal <= Number.MAX_SAFE_INTEGER
    this.#recordTotal += recordTotal
    if (wasWithinBounds && this.#recordTotal > Number.MAX_SAFE_INTEGER)
      found.add('', () => `with this descriptor, the record total exceeds ${Number.MAX_SAFE_INTEGER}`)
    for (const [position, { level, index }] of partitions.entries()) {
      const reached = this.#level
      if (level < reached) {
        found.add(
          `/${position}/priorityLevel`,
          () => `priorityLevel ${level} comes after ${reached}; sort by ascending priorityLevel`,
        )
        continue
      }
      if (level > reached) {
        this.#level = level
        this.#indexes = new SeenIndexes()
      }
      if (!this.#indexes.add(index))
        found.add(
          `/${position}/partition_name`,
          () =>
            `${quoted(partitionName(taskId, level, index))} occurred before; a partition can occur only once`,
        )
    }
  }
}

const quoted = (text: string) => JSON.stringify(text)

/**
 * Replaces the position of another descriptor in a violation, like the `/5` in "names the same partition as
 * /5", with the name that `nameOf` returns.
 */
export function namingPositions(detail: string, nameOf: (position: number) => string): string {
  return detail.replace(
    /( names the same partition as |^taskId must be the same in the whole array: )\/(\d+)/,
    (_, words, position) => `${words}${nameOf(Number(position))}`,
  )
}

/**
 * Returns the same problem with pointers into everything that the caller passed, instead of into one piece.
 */
export function rebased(found: Problem, offset: number): Problem {
  if (offset === 0) return found
  const move = <T extends { pointer: string; detail: string }>(place: T): T => ({
    ...place,
    pointer: place.pointer.replace(/^\/(\d+)/, (_, position) => `/${Number(position) + offset}`),
    detail: namingPositions(place.detail, (position) => `/${position + offset}`),
  })
  return {
    ...found,
    ...(found.errors === undefined ? {} : { errors: found.errors.map(move) }),
    ...(found.conflicts === undefined ? {} : { conflicts: found.conflicts.map(move) }),
  }
}
