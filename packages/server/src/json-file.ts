import { readFileSync, statSync } from 'node:fs'
import type { TObject } from 'typebox'
import { Errors } from 'typebox/schema'
import { SettingsError } from './settings-error.ts'

// JSON files that operators write: tokens and subscriptions. Messages give the position of a fault but never
// quote the content, which may be a secret.

/** The message for faults at paths that match `of`, if the schema's own message is hard to understand. */
export interface PlainFault {
  readonly of: RegExp
  readonly fault: string
}

/** `name` is the name of the file in messages. Throws a SettingsError if it cannot be read. */
export function readJsonFile(path: string, name: string): unknown {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch (error) {
    const unreadable = (error as NodeJS.ErrnoException).code
    // The parser's message is not used, because it quotes the content, which may be a secret.
    const fault = unreadable === undefined ? 'is not JSON' : `cannot be read (${unreadable})`
    throw new SettingsError([`${name} ${path} ${fault}`])
  }
}

/** Returns a warning if others than the file's owner and group have access. Windows has no such modes. */
export function openToOthers(path: string, name: string): string[] {
  if (process.platform === 'win32' || (statSync(path).mode & 0o007) === 0) return []
  return [`${name} ${path} is open to all users of the machine: chmod 600 it`]
}

/** The faults of the content. Even field names are not quoted, because a secret may be there by mistake. */
export function schemaFaults(
  schema: TObject,
  content: unknown,
  at: string,
  inPlainWords: readonly PlainFault[],
): string[] {
  const [, errors] = Errors(schema, content)
  return errors.flatMap(({ keyword, instancePath, message }) => {
    // Each of these comes with another error about the object that has the field.
    if (keyword === 'boolean') return []
    const fault =
      keyword === 'additionalProperties'
        ? `must not have other fields than ${Object.keys(schema.properties).join(', ')}`
        : (inPlainWords.find(({ of }) => of.test(instancePath))?.fault ?? message)
    return [`${at}${instancePath}`.replace(/^$/, '/').concat(`, which ${fault}`)]
  })
}

/** The expected form of the file is given once, with the first fault. */
export function formFaults([first, ...others]: readonly string[], form: string): string[] {
  if (first === undefined) return []
  return [
    `is not of the form ${form}: see ${first}`,
    ...others.map((fault) => `departs from its form: see ${fault}`),
  ]
}
