import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** Where `packages/server/test/compile-once.ts` puts the programs that tests start. */
export const PROGRAMS = new URL('../../node_modules/.cache/programs/', import.meta.url)

const source = {
  service: new URL('../../packages/server/src/main.ts', import.meta.url),
  command: new URL('../../packages/cli/src/main.ts', import.meta.url),
}

/** The flags and the file with which Node runs one of our programs. Outside of Vitest that is its source. */
export function programArguments(name: keyof typeof source): string[] {
  const prepared = new URL(`${name}.js`, PROGRAMS)
  const isPrepared = process.env['VITEST'] !== undefined && existsSync(prepared)
  return ['--conditions=baton-source', fileURLToPath(isPrepared ? prepared : source[name])]
}
