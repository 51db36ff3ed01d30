import { randomBytes } from 'node:crypto'
import { existsSync, lstatSync, renameSync, statSync, writeFileSync } from 'node:fs'
import type { AuditEntry } from '@baton/client'
import { MAX_PAGE_LENGTH } from '@baton/protocol/core'
import type { Arguments, Command } from '../command-line.ts'
import { connect, connectionFlags, cursorFlag, moreText } from '../connection.ts'
import { exitCodes, UsageError } from '../errors.ts'
import { count } from '../show/numbers.ts'
import { nameColumn, shown, table } from '../show/table.ts'
import { note, print, printJson } from '../terminal.ts'

const ROLES = ['producer', 'worker', 'operator', 'viewer'] as const
/** Twice the bytes that are needed, so that no part of the token can be guessed from another. */
const TOKEN_BYTES = 32

export const token: Command = {
  operands: 'create',
  operandCount: [1, 1],
  details:
    'Makes a token and prints it, once: it is kept nowhere. Its line for the tokens file of the service has the SHA-256 of\n' +
    'it, and is printed to standard error, or added to a file, which a running service then reads by itself. Several\n' +
    'tokens may have one name: to replace one, add a new one, give it to its users, and remove the old one.',
  flags: {
    name: {
      kind: 'text',
      placeholder: 'NAME',
      description: 'whose it is; orders and refusals are logged by it',
    },
    role: {
      kind: 'text',
      placeholder: 'ROLES',
      repeatable: true,
      description: `what it may do: ${ROLES.join(', ')}; separated by commas, or one flag for each`,
    },
    tasks: {
      kind: 'text',
      placeholder: 'PREFIXES',
      repeatable: true,
      description: 'only tasks whose id begins with this',
      otherwise: 'all',
    },
    tables: {
      kind: 'text',
      placeholder: 'TABLES',
      repeatable: true,
      description: 'only partitions of these compute tables',
      otherwise: 'all',
    },
    file: {
      kind: 'text',
      placeholder: 'FILE',
      description: 'the tokens file to add it to; made if it is not there',
    },
    json: { kind: 'switch', description: 'answer in JSON: the token, and its entry in the file' },
  },
  examples: [
    { line: 'baton token create --name fleet --role worker --file tokens.json', says: 'For the workers' },
    {
      line: 'baton token create --name sales --role producer --tasks sales- --tables results.sales',
      says: 'For a producer of certain tasks and tables',
    },
  ],
  run: async (given) => {
    if (given.operands[0] !== 'create') throw new UsageError('token needs create')
    const name = given.text('name')
    if (name === undefined) throw new UsageError('token create needs --name')
    if (given.texts('role').length === 0)
      throw new UsageError(`token create needs --role: ${ROLES.join(', ')}`)
    const { contentOf, digestOf, tokensIn } = await import('@baton/server/tokens')
    const made = `baton_${randomBytes(TOKEN_BYTES).toString('base64url')}`
    const entry = {
      name,
      sha256: digestOf(made),
      roles: listed(given, 'role'),
      ...limitOf(given, 'tasks'),
      ...limitOf(given, 'tables'),
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
          ? `For the tokens of the tokens file: ${JSON.stringify(entry)}`
          : `Added to ${path}. The token is shown only here: keep it where its users find it.`,
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
 * Replaces the file atomically, so that a service that reads it meanwhile gets the old or the new content. A
 * symbolic link is kept, and its target is overwritten in place.
 */
function replace(path: string, text: string): void {
  const isLink = existsSync(path) && lstatSync(path).isSymbolicLink()
  const mode = existsSync(path) ? statSync(path).mode & 0o777 : 0o600
  if (isLink) {
    writeFileSync(path, text)
    return
  }
  const beside = `${path}.${process.pid}.new`
  writeFileSync(beside, text, { mode })
  renameSync(beside, path)
}

export const audit: Command = {
  operands: '',
  operandCount: [0, 0],
  details:
    'Lists who gave which order, which tokens were refused, and when files of tokens or certificates were read again:\n' +
    'at the node that answers, since it started, newest first. The log of each node has the same for good.',
  flags: {
    limit: { kind: 'number', placeholder: 'N', minimum: 1, default: 50, description: 'the most to list' },
    cursor: cursorFlag,
    ...connectionFlags,
  },
  examples: [{ line: 'baton audit --limit 10', says: 'What was done last, and by whom' }],
  run: async (given) => {
    const client = connect(given)
    const limit = given.numberOrDefault('limit')
    const entries: AuditEntry[] = []
    let cursor = given.text('cursor')
    do {
      const page = await client.audit({ cursor, limit: Math.min(limit - entries.length, MAX_PAGE_LENGTH) })
      entries.push(...page.entries)
      cursor = page.next ?? undefined
    } while (cursor !== undefined && entries.length < limit)
    if (given.switch('json')) printJson({ entries, next: cursor ?? null })
    else if (entries.length === 0) print('nothing was ordered or refused since the node started')
    else {
      print(auditTable(entries))
      if (cursor !== undefined) note(moreText('--limit', cursor))
    }
    return exitCodes.ok
  },
}

function auditTable(entries: readonly AuditEntry[]): string {
  return table(entries, [
    { title: 'WHEN', of: ({ at }) => at },
    nameColumn('NAME', ({ name }) => name ?? '-'),
    { title: 'ADDRESS', of: ({ address }) => shown(address ?? '-') },
    nameColumn('ACTION', ({ action }) => action),
    {
      title: 'OUTCOME',
      of: ({ outcome, times }) => (times > 1 ? `${outcome} (${count(times)} times)` : outcome),
    },
    nameColumn('DETAIL', ({ detail }) => detail ?? ''),
  ])
}
