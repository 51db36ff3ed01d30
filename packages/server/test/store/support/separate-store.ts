import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Store } from '../../../src/handoff/store.ts'
import type { StoreReply } from './store-process.ts'

/** The error of a store in another process. */
export class SeparateStoreError extends Error {
  readonly code: string | undefined
  constructor({ name, code, text }: { name: string; code?: string; text: string }) {
    super(text)
    this.name = name
    this.code = code
  }
}

export class SeparateStore {
  readonly #child: ChildProcess
  readonly #waiting = new Map<number, PromiseWithResolvers<unknown>>()
  #lastId = 0
  readonly store: Store

  private constructor(child: ChildProcess) {
    this.#child = child
    child.on('message', (reply: StoreReply) => {
      const waiting = this.#waiting.get(reply.id)
      if ('error' in reply) waiting?.reject(new SeparateStoreError(reply.error))
      else waiting?.resolve(reply.result)
    })
    this.store = new Proxy({} as Store, {
      get: (_, verb) => (argument: unknown) => this.#call(String(verb), argument),
    })
  }

  /**
   * Opens the folder in a new process, or rejects with the reason for its refusal. `obeyModes` drops root's
   * permission to ignore file modes; other users never have it.
   */
  static async open(
    folder: string,
    { obeyModes = false, umask }: { obeyModes?: boolean; umask?: string } = {},
  ): Promise<SeparateStore> {
    const entry = fileURLToPath(new URL('./store-process.ts', import.meta.url))
    const command = [process.execPath, '--conditions=baton-source', entry, folder]
    if (obeyModes && process.getuid?.() === 0) command.unshift('setpriv', '--bounding-set=-dac_override')
    if (umask !== undefined) command.unshift('sh', '-c', `umask ${umask}; exec "$@"`, 'sh')
    const [file = '', ...args] = command
    // Tags are bigints, which JSON does not have.
    const child = spawn(file, args, {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      serialization: 'advanced',
    })
    const separate = new SeparateStore(child)
    try {
      await separate.#answerTo(0)
      return separate
    } catch (error) {
      await separate.#ended()
      throw error
    }
  }

  /** The maximum file size that the process may write; null removes the limit. */
  limitFileSize(bytes: number | null): void {
    execFileSync('prlimit', [`--pid=${this.#child.pid}`, `--fsize=${bytes ?? 'unlimited'}:unlimited`])
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#ended()
  }

  async close(): Promise<void> {
    await this.store.close()
    this.#child.disconnect()
    await this.#ended()
  }

  async #ended(): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) await once(this.#child, 'exit')
  }

  #call(verb: string, argument: unknown): Promise<unknown> {
    this.#lastId += 1
    const answer = this.#answerTo(this.#lastId)
    this.#child.send({ id: this.#lastId, verb, argument })
    return answer
  }

  #answerTo(id: number): Promise<unknown> {
    const waiting = Promise.withResolvers<unknown>()
    this.#waiting.set(id, waiting)
    return waiting.promise
  }
}
