type Undo = () => Promise<void> | void

/**
 * What was started must be stopped, in the reverse order, also when a scenario throws or the run is
 * interrupted. Nested scopes: one per run, one per scenario.
 */
export class CleanUp {
  #undos: Undo[] = []

  add(undo: Undo): void {
    this.#undos.push(undo)
  }

  async run(): Promise<void> {
    for (let undo = this.#undos.pop(); undo; undo = this.#undos.pop()) {
      try {
        await undo()
      } catch (error) {
        process.stderr.write(`clean-up failed: ${error instanceof Error ? error.message : String(error)}\n`)
      }
    }
  }
}

/** Ctrl-C and SIGTERM stop the started servers before the run ends. */
export function cleanUpOnInterrupt(cleanUps: readonly CleanUp[]): void {
  let interrupted = false
  const interrupt = (signal: NodeJS.Signals) => {
    if (interrupted) return
    interrupted = true
    process.stderr.write(`\n${signal}: stopping what was started\n`)
    const all = [...cleanUps].reverse().reduce((done, next) => done.then(() => next.run()), Promise.resolve())
    all.finally(() => process.exit(130))
  }
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, interrupt)
}
