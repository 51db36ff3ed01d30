import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'

/** A folder for the duration of a test, by which commands and the test communicate. */
export class Scratch {
  readonly path = mkdtempSync(join(tmpdir(), 'baton-cli-'))

  constructor() {
    onTestFinished(() => rmSync(this.path, { recursive: true, force: true }))
  }

  file(name: string, content?: string): string {
    const path = join(this.path, name)
    if (content !== undefined) writeFileSync(path, content)
    return path
  }

  names(): string[] {
    return readdirSync(this.path).toSorted()
  }

  read(name: string): string {
    return readFileSync(this.file(name), 'utf8')
  }

  lines(name: string): string[] {
    return existsSync(this.file(name)) ? this.read(name).split('\n').slice(0, -1) : []
  }
}
