import { readFileSync, statSync } from 'node:fs'
import type { TObject } from 'typebox'
import { Errors } from 'typebox/schema'
import { SettingsError } from './settings-error.ts'

// JSON files that people write: tokens, subscriptions. Faults say where they are and never what stands there, because
// that may be a secret.

/** A fault of the place that the pattern matches, where the words of the schema are not for people. */
export interface PlainFault {
  readonly of: RegExp
  readonly fault: string
}

/** `name` is what messages call the file. Throws a SettingsError where it cannot be read. */
export function readJsonFile(path: string, name: string): unknown {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch (error) {
    const unreadable = (error as NodeJS.ErrnoException).code
    // Not the parser's message: it quotes what it stumbled over, and that may be a secret.
    const fault = unreadable === undefined ? 'is not JSON' : `cannot be read (${unreadable})`
    throw new SettingsError([`${name} ${path} ${fault}`])
  }
}

/** A warning, unless only its user and group can use the file. Windows has no such modes. */
export function openToOthers(path: string, name: string): string[] {
  if (process.platform === 'win32' || (statSync(path).mode & 0o007) === 0) return []
  return [`${name} ${path} is open to all users of the machine: chmod 600 it`]
}

/** The places that depart from the form. Not even names of fields are quoted: a secret may stand there by mistake. */
export function schemaFaults(
  schema: TObject,
  content: unknown,
  at: string,
  inPlainWords: readonly PlainFault[],
): string[] {
  const [, errors] = Errors(schema, content)
  return errors.flatMap(({ keyword, instancePath, message }) => {
    // Beside each of these stands one about the object that has the field.
    if (keyword === 'boolean') return []
    const fault =
      keyword === 'additionalProperties'
        ? `must not have other fields than ${Object.keys(schema.properties).join(', ')}`
        : (inPlainWords.find(({ of }) => of.test(instancePath))?.fault ?? message)
    return [`${at}${instancePath}`.replace(/^$/, '/').concat(`, which ${fault}`)]
  })
}

/** The form of the whole file is told once, with the first fault. */
export function formFaults([first, ...others]: readonly string[], form: string): string[] {
  if (first === undefined) return []
  return [
    `is not of the form ${form}: see ${first}`,
    ...others.map((fault) => `departs from its form: see ${fault}`),
  ]
}
