import { checkChosen, didYouMean, type Preferences, readPreference } from '@baton/protocol'
import { RequestProblem } from '../answers/problems.ts'

/** The query of a pull, or of a settle that pulls: how much to lease, and from which tables and tasks. */
export interface PullQuery {
  readonly preferences: Omit<Preferences, 'applied' | 'fault'>
  readonly tables: readonly string[] | null
  readonly tasks: readonly string[] | null
}

export const NO_QUERY: PullQuery = { preferences: {}, tables: null, tasks: null }

const amounts = { batch: 'batch', records: 'records', wait: 'waitSeconds' } as const
const known = ['table', 'task', ...Object.keys(amounts)]

/**
 * Refuses invalid and unknown parameters. Ignoring a filter would lease partitions to a worker that cannot
 * process them.
 */
export function readPullQuery(text: string): PullQuery {
  if (text === '') return NO_QUERY
  if (!isEncoded(text))
    throw new RequestProblem('bad_request', 'the query is not validly percent-encoded UTF-8')
  const given = new URLSearchParams(text)
  const preferences: { -readonly [Name in keyof PullQuery['preferences']]: number } = {}
  for (const name of new Set(given.keys())) {
    if (!known.includes(name)) throw unknownParameter(name)
    if (!(name in amounts)) continue
    const [value = '', ...others] = given.getAll(name)
    if (others.length > 0) throw new RequestProblem('parameter_invalid', `${name} must be given once`)
    const read = readPreference(name as keyof typeof amounts, value)
    if (!read.ok) throw new RequestProblem('parameter_invalid', read.detail)
    preferences[amounts[name as keyof typeof amounts]] = read.value
  }
  return { preferences, tables: chosen('table', given), tasks: chosen('task', given) }
}

function unknownParameter(name: string): RequestProblem {
  const meant = didYouMean(name, known)
  const advice =
    meant === undefined ? `there are ${known.slice(0, -1).join(', ')} and wait` : `did you mean ${meant}?`
  return new RequestProblem(
    'parameter_invalid',
    `${JSON.stringify(name)} is not a query parameter here; ${advice}`,
  )
}

function chosen(kind: 'table' | 'task', given: URLSearchParams): readonly string[] | null {
  const names = given.getAll(kind)
  if (names.length === 0) return null
  const checked = checkChosen(kind, names)
  if (checked.ok) return checked.names
  throw new RequestProblem('parameter_invalid', checked.detail)
}

function isEncoded(text: string): boolean {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}
