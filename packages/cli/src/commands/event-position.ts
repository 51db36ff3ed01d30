import { open, readFile, rename } from 'node:fs/promises'
import { UsageError } from '../errors.ts'

/** The subscription that a state file belongs to. */
export interface Following {
  readonly url: string
  readonly types: readonly string[]
  readonly taskPrefix: string
}

interface State extends Following {
  readonly subscription: string
  /** The last event that was handled. */
  readonly after?: string
}

/**
 * The position of `baton on` in its events, kept in a file. The file is flushed and replaced atomically
 * before the next event is handled.
 */
export class EventPosition {
  readonly #path: string
  readonly #following: Following
  #state: State | null

  private constructor(path: string, following: Following, state: State | null) {
    this.#path = path
    this.#following = following
    this.#state = state
  }

  static async open(path: string, following: Following): Promise<EventPosition> {
    const state = await read(path)
    if (state !== null) {
      const made = JSON.stringify([state.types, state.taskPrefix])
      if (made !== JSON.stringify([following.types, following.taskPrefix]))
        throw new UsageError(
          `${path} belongs to ${state.types.join(' ')}${state.taskPrefix === '' ? '' : ` of tasks that begin with ${state.taskPrefix}`}; name another file with --state`,
        )
    }
    return new EventPosition(path, following, state)
  }

  get subscription(): string | null {
    return this.#state?.subscription ?? null
  }

  get after(): string | undefined {
    return this.#state?.after
  }

  async begin(subscription: string): Promise<void> {
    await this.#write({ ...this.#following, subscription })
  }

  async move(after: string): Promise<void> {
    if (this.#state === null) throw new Error('there is no subscription yet')
    await this.#write({ ...this.#state, after })
  }

  async #write(state: State): Promise<void> {
    const beside = `${this.#path}.new`
    const file = await open(beside, 'w', 0o600)
    try {
      await file.writeFile(`${JSON.stringify(state, null, 2)}\n`)
      await file.sync()
    } finally {
      await file.close()
    }
    await rename(beside, this.#path)
    this.#state = state
  }
}

async function read(path: string): Promise<State | null> {
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw new UsageError(`${path} cannot be read: ${(error as Error).message}`)
  }
  try {
    const state = JSON.parse(text) as State
    if (typeof state.subscription === 'string' && Array.isArray(state.types)) return state
  } catch {
    // Reported below.
  }
  throw new UsageError(`${path} is not a state file of baton on; name another one with --state`)
}
