import { once } from 'node:events'
import { ServiceProcess } from '../../support/service-process.ts'

/** No answer was received: the request may have taken effect or not, and can be sent again. */
export class Unanswered extends Error {
  override name = 'Unanswered'
}

/** The service under test: killed and restarted on the same data, each time on another port. */
export class MortalService {
  readonly #data: string
  readonly #args: readonly string[]
  #running: Promise<ServiceProcess>
  #stopped = false

  constructor(data: string, args: readonly string[]) {
    this.#data = data
    this.#args = args
    this.#running = this.#start()
  }

  /** Kills it at any moment and restarts it before the next request. */
  async killAndRestart(): Promise<void> {
    const doomed = await this.#running
    doomed.signal('SIGKILL')
    this.#running = doomed.exited.then(() => this.#start())
    await this.#running
  }

  async stop(): Promise<void> {
    this.#stopped = true
    const { child, exited } = await this.#running
    child.kill('SIGTERM')
    await exited
  }

  async ask<Answer>(path: string, options: RequestInit = {}): Promise<Answer> {
    const { url } = await this.#running
    let answer: Response
    let text: string
    try {
      answer = await fetch(url + path, options)
      text = await answer.text()
    } catch (error) {
      if (this.#stopped) throw error
      throw new Unanswered('the connection ended', { cause: error })
    }
    if (answer.status !== 200) throw new Error(`${path} was answered ${answer.status}: ${text}`)
    return JSON.parse(text) as Answer
  }

  /** Sends a request until there is an answer. Calls `lost` for each attempt without one. */
  async insist<Answer>(path: string, options: RequestInit, lost: () => void = () => {}): Promise<Answer> {
    while (true) {
      try {
        return await this.ask<Answer>(path, options)
      } catch (error) {
        if (!(error instanceof Unanswered)) throw error
        lost()
        // A killed process may accept connections until it is gone.
        await once(AbortSignal.timeout(5), 'abort')
      }
    }
  }

  #start(): Promise<ServiceProcess> {
    return ServiceProcess.started(this.#args, this.#data)
  }
}
