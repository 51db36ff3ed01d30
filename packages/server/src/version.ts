import { readFileSync } from 'node:fs'

/** Read from package.json, which is one folder above both the sources and the build. */
export const version: string = JSON.parse(
  readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
).version
