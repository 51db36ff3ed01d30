import { randomBytes } from 'node:crypto'
import { chmodSync, chownSync, existsSync, lstatSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import type { Arguments, Command } from '../command-line.ts'
import { exitCodes, UsageError } from '../errors.ts'
import { note, print, printJson } from '../terminal.ts'

const ROLES = ['producer', 'worker', 'operator', 'viewer'] as const
/** Twice the bytes that are needed, so that no part of the token can be guessed from another. */
const TOKEN_BYTES = 32

export const token: Command = {
  operands: 'create',
  operandCount: [1, 1],
  details:
    'Creates a token and prints it once; it is not stored. The entry for the tokens file of the service contains the\n' +
    'SHA-256 of the token. It is printed to standard error or added to a file; a running service reloads the file. Several\n' +
    'tokens can have the same name: to replace a token, add a new one, distribute it, and remove the old one.',
  flags: {
    name: {
      kind: 'text',
      placeholder: 'NAME',
      description: 'name of the token, which the audit log shows',
    },
    role: {
      kind: 'text',
      placeholder: 'ROLES',
      repeatable: true,
      description: `roles of the token: ${ROLES.join(', ')}; separated by commas, or one flag per role`,
    },
    tasks: {
      kind: 'text',
      placeholder: 'PREFIXES',
      repeatable: true,
      description: 'only tasks whose id begins with this prefix',
      otherwise: 'all',
    },
    tables: {
      kind: 'text',
      placeholder: 'TABLES',
      repeatable: true,
      description: 'only partitions of these compute tables',
      otherwise: 'all',
    },
    'max-weight': {
      kind: 'number',
      placeholder: 'N',
      minimum: 1,
      description: 'largest weight that a producer may give to a task',
      otherwise: '1',
    },
    'lowest-level': {
      kind: 'number',
      placeholder: 'N',
      description: 'lowest level that a producer may call back',
      otherwise: '0',
    },
    'max-open-tasks': {
      kind: 'number',
      placeholder: 'N',
      minimum: 1,
      description: 'how many open tasks a producer may have',
      otherwise: '1000',
    },
    'max-waiting-partitions': {
      kind: 'number',
      placeholder: 'N',
      minimum: 1,
      description: 'how many waiting partitions the tasks of a producer may have',
      otherwise: '10000000',
    },
    file: {
      kind: 'text',
      placeholder: 'FILE',
      description: 'the tokens file to add the entry to; created if it does not exist',
    },
    json: { kind: 'switch', description: 'print JSON: the token and its entry for the file' },
  },
  examples: [
    { line: 'baton token create --name fleet --role worker --file tokens.json', says: 'A token for workers' },
    {
      line: 'baton token create --name sales --role producer --tasks sales- --tables results.sales',
      says: 'A token for a producer of some tasks and tables',
    },
  ],
  run: async (given) => {
    if (given.operands[0] !== 'create') throw new UsageError('token requires create')
    const name = given.text('name')
    if (name === undefined) throw new UsageError('token create requires --name')
    if (given.texts('role').length === 0)
      throw new UsageError(`token create requires --role: ${ROLES.join(', ')}`)
    const { contentOf, digestOf, tokensIn } = await import('@baton/server/tokens')
    const made = `baton_${randomBytes(TOKEN_BYTES).toString('base64url')}`
    const entry = {
      name,
      sha256: digestOf(made),
      roles: listed(given, 'role'),
      ...limitOf(given, 'tasks'),
      ...limitOf(given, 'tables'),
      ...numberOf(given, 'max-weight', 'maxWeight'),
      ...numberOf(given, 'lowest-level', 'lowestLevel'),
      ...numberOf(given, 'max-open-tasks', 'maxOpenTasks'),
      ...numberOf(given, 'max-waiting-partitions', 'maxWaitingPartitions'),
    }
    const path = given.text('file')
    const content = unlessRefused(() => {
      const whole = withEntry(
        path !== undefined && existsSync(path) ? contentOf(path) : { tokens: [] },
        entry,
      )
      tokensIn(whole, path ?? '')
      return whole
    })
    if (path !== undefined) replace(path, `${JSON.stringify(content, null, 2)}\n`)
    if (given.switch('json')) printJson({ token: made, entry })
    else {
      print(made)
      note(
        path === undefined
          ? `Entry for the tokens file: ${JSON.stringify(entry)}`
          : `Added to ${path}. The token is shown only once; store it safely.`,
      )
    }
    return exitCodes.ok
  },
}

const listed = (given: Arguments, flag: string) =>
  given
    .texts(flag)
    .flatMap((text) => text.split(','))
    .map((text) => text.trim())
    .filter((text) => text !== '')

const limitOf = (given: Arguments, flag: string) =>
  given.texts(flag).length === 0 ? {} : { [flag]: listed(given, flag) }

function numberOf(given: Arguments, flag: string, field: string): Record<string, number> {
  const number = given.number(flag)
  return number === undefined ? {} : { [field]: number }
}

/** If the file is malformed, its content is returned unchanged, and the check reports the fault. */
function withEntry(content: unknown, entry: object): unknown {
  const { tokens } = (content ?? {}) as { tokens?: unknown }
  return Array.isArray(tokens) ? { ...(content as object), tokens: [...tokens, entry] } : content
}

/** Applies the rules of the service, and turns a refusal into a usage error. */
function unlessRefused<Result>(make: () => Result): Result {
  try {
    return make()
  } catch (error) {
    const { lines } = error as { lines?: readonly string[] }
    if (lines === undefined) throw error
    throw new UsageError(lines.join('\n').replaceAll('the tokens file  ', 'the entry '))
  }
}

/**
 * Replaces the file atomically, so that a service that reads it meanwhile gets the old or the new content. The
 * file keeps its mode and owner, so that the service can still read it. A symbolic link is kept, and its target
 * is overwritten in place.
 */
function replace(path: string, text: string): void {
  const before = lstatSync(path, { throwIfNoEntry: false })
  if (before?.isSymbolicLink()) {
    writeFileSync(path, text)
    return
  }
  const replacement = `${path}.${process.pid}.new`
  writeFileSync(replacement, text, { mode: 0o600 })
  try {
    if (before !== undefined) {
      chownSync(replacement, before.uid, before.gid)
      chmodSync(replacement, before.mode & 0o777)
    }
    renameSync(replacement, path)
  } catch (error) {
    rmSync(replacement)
    throw error
  }
}
