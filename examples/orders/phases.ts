/** Prints the time of each phase, and how much of it is Baton's. */
export class Phases {
  readonly #baton: string
  #asked = 0
  #seconds = 0
  #processor = 0

  constructor(baton: string) {
    this.#baton = baton
    print('', 'time', 'of it in requests', "service's processor")
  }

  /** A request of this program has ended. */
  asked(millis: number): void {
    this.#asked += millis / 1000
  }

  async run<T>(name: string, phase: () => Promise<T>): Promise<T> {
    const processor = await this.#processorSeconds()
    this.#asked = 0
    const begun = performance.now()
    const result = await phase()
    const seconds = (performance.now() - begun) / 1000
    const used = (await this.#processorSeconds()) - processor
    this.#seconds += seconds
    this.#processor += used
    print(
      name,
      inSeconds(seconds),
      this.#asked === 0 ? '' : share(this.#asked, seconds),
      share(used, seconds),
    )
    return result
  }

  sum(): void {
    print('all', inSeconds(this.#seconds), '', share(this.#processor, this.#seconds))
  }

  async #processorSeconds(): Promise<number> {
    const text = await (await fetch(new URL('metrics', this.#baton))).text()
    const modes = text.matchAll(/^baton_process_cpu_seconds_total\{.*\} (.*)$/gm)
    return [...modes].reduce((sum, [, seconds]) => sum + Number(seconds), 0)
  }
}

const inSeconds = (seconds: number) => `${seconds.toFixed(1)} s`
const share = (part: number, whole: number) =>
  `${inSeconds(part)} ${((part / whole) * 100).toFixed(0).padStart(3)} %`

function print(name: string, seconds: string, requests: string, processor: string): void {
  console.log(`${name.padEnd(16)}${seconds.padStart(9)}${requests.padStart(20)}${processor.padStart(22)}`)
}
