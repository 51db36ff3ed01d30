const ENOUGH = 40

/** What a run has found that must not be. */
export class Findings {
  readonly all: string[] = []
  readonly #tell: (finding: string) => void

  constructor(tell: (finding: string) => void = () => {}) {
    this.#tell = tell
  }

  /** After so many the rest would only be more of the same. */
  get areEnough(): boolean {
    return this.all.length >= ENOUGH
  }

  add(finding: string): void {
    if (this.areEnough) return
    this.all.push(finding)
    this.#tell(finding)
  }
}
