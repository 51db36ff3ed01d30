import type { Location, Progress } from '@baton/server/store-tools'
import type { Arguments } from './arguments.ts'
import type { Flags } from './flag.ts'
import { Refusal } from './refusal.ts'
import { ProgressLine } from './show/progress-line.ts'
import { UsageError } from './usage-error.ts'

/** Where the data is: the same as for `baton serve`. These commands do not ask the service, they read what it reads. */
export const storeFlags = {
  data: {
    kind: 'text',
    placeholder: 'FOLDER',
    variable: 'BATON_DATA',
    default: './data',
    description: 'folder of the embedded store',
  },
  'database-url': {
    kind: 'text',
    placeholder: 'URL',
    variable: 'BATON_DATABASE_URL',
    description:
      'the PostgreSQL database, instead of a folder; better given by the variable, which other users cannot see',
  },
  json: { kind: 'switch', description: 'answer in JSON, errors too' },
} satisfies Flags

export function locationOf(given: Arguments): Location {
  const databaseUrl = given.text('database-url')
  if (databaseUrl === undefined) return { data: given.textOrDefault('data') }
  if (
    given.sourceOf('database-url') === '--database-url' &&
    given.text('data') !== undefined &&
    given.sourceOf('data') === '--data'
  )
    throw new UsageError('--data and --database-url name two stores; give one of them')
  return { databaseUrl }
}

type StoreTools = typeof import('@baton/server/store-tools')

/** Runs it with a progress bar, and makes what is wrong with the store or the file an answer without a stack. */
export async function withStoreTools<Result>(
  label: string,
  work: (tools: StoreTools, progress: Progress) => Promise<Result>,
): Promise<Result> {
  const tools = await import('@baton/server/store-tools')
  let line: ProgressLine | undefined
  let shown = 0
  const progress: Progress = (done, total) => {
    line ??= new ProgressLine(label, total)
    line.advance(done - shown)
    shown = done
  }
  try {
    return await work(tools, progress)
  } catch (error) {
    if (error instanceof tools.StoreRefused || error instanceof tools.StoreUnavailable)
      throw new Refusal(error.message, { cause: error })
    throw error
  } finally {
    line?.[Symbol.dispose]()
  }
}
