const LONGEST = 1000

/** How the input begins, which tells something else from JSON with a fault in it. */
export class Opening {
  #text = ''

  add(chunk: string): void {
    if (this.#text.length >= LONGEST || this.#text.includes('\n')) return
    this.#text = `${this.#text}${chunk.slice(0, LONGEST)}`.trimStart()
  }

  /** What to say of the whole input; undefined where it begins as it should, and the fault itself says more. */
  get complaint(): string | undefined {
    if (this.#text === '' || /^[[{]/.test(this.#text)) return undefined
    const [line = ''] = this.#text.split('\n', 1)
    const what = line.includes(',') ? 'this looks like CSV, and is not JSON' : 'this is not JSON'
    return `${what}: expected are JSON objects, one per line, or an array of them`
  }
}
