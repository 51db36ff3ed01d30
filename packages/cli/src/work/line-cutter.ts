import { StringDecoder } from 'node:string_decoder'

/** The lines of a stream of bytes, as they end. A line that is longer than `longest` characters comes in pieces. */
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

  /** What has no line break at the end is a line too. */
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
