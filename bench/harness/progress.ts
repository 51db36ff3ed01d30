/** Lines on standard error while the run goes on, so that the table on standard output can be piped. */
export class Progress {
  readonly #startedAt = performance.now()
  #scenario = ''

  scenario(name: string): void {
    this.#scenario = name
  }

  say(text: string): void {
    const seconds = Math.round((performance.now() - this.#startedAt) / 1000)
    const where = this.#scenario === '' ? '' : `${this.#scenario}: `
    process.stderr.write(`[${String(seconds).padStart(4)} s] ${where}${text}\n`)
  }
}
