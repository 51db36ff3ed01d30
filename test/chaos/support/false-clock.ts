import { existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ProgramsMissing } from './programs.ts'

const LIBRARIES = ['x86_64-linux-gnu', 'aarch64-linux-gnu'].map(
  (platform) => `/usr/lib/${platform}/faketime/libfaketimeMT.so.1`,
)

export function findFaketime(): string {
  const found = LIBRARIES.find(existsSync)
  if (found === undefined)
    throw new ProgramsMissing('clocks', [`libfaketime (${LIBRARIES.join(' or ')})`], 'libfaketime')
  return found
}

/** The wall clock of a process, which can be set while it runs. The monotonic clock is unaffected. */
export class FalseClock {
  readonly #folder: string

  private constructor(folder: string) {
    this.#folder = folder
  }

  static async create(): Promise<FalseClock> {
    const clock = new FalseClock(await mkdtemp(join(tmpdir(), 'baton-clock-')))
    await clock.set(0)
    return clock
  }

  /** The environment of the process that uses this clock. */
  get environment(): Readonly<Record<string, string>> {
    return {
      LD_PRELOAD: findFaketime(),
      FAKETIME_TIMESTAMP_FILE: this.#file,
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    }
  }

  /** Seconds ahead of the true time, or, if negative, behind it. */
  set(seconds: number): Promise<void> {
    return writeFile(this.#file, `${seconds < 0 ? '' : '+'}${seconds}\n`)
  }

  dispose(): Promise<void> {
    return rm(this.#folder, { recursive: true, force: true })
  }

  get #file(): string {
    return join(this.#folder, 'offset')
  }
}
