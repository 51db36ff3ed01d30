import { once } from 'node:events'
import { ServiceProcess } from '../../support/service-process.ts'

/** No answer came: what was asked may have happened or not, and the same may be asked again. */
export class Unanswered extends Error {
  override name = 'Unanswered'
}

/** The service under fire: killed and started again on the same data, each time on another port. */
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

  /** Ends it in the middle of whatever it does, and has it back before anything else is asked. */
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

  /** Asks until there is an answer. `lost` hears of each time there was none. */
  async insist<Answer>(path: string, options: RequestInit, lost: () => void = () => {}): Promise<Answer> {
    while (true) {
      try {
        return await this.ask<Answer>(path, options)
      } catch (error) {
        if (!(error instanceof Unanswered)) throw error
        lost()
        // A process that was killed may take connections until it is gone.
        await once(AbortSignal.timeout(5), 'abort')
      }
    }
  }

  #start(): Promise<ServiceProcess> {
    return ServiceProcess.started(this.#args, this.#data)
  }
}
