import { readFileSync } from 'node:fs'
import Type, { type Static } from 'typebox'
import { Check, Errors } from 'typebox/schema'
import { SettingsError } from '../../settings-error.ts'
import { digestOf, type KnownToken, type Role, roles, Tokens } from './tokens.ts'

const closed = { additionalProperties: false }
const fileSchema = Type.Object({ tokens: Type.Array(Type.Unknown(), { minItems: 1 }) }, closed)
const tokenSchema = Type.Object(
  {
    name: Type.String({ minLength: 1 }),
    token: Type.Optional(Type.String({ pattern: '^[\\x21-\\x7e]+$' })),
    sha256: Type.Optional(Type.String({ pattern: '^[0-9a-fA-F]{64}$' })),
    roles: Type.Array(Type.Unsafe<Role>({ type: 'string', enum: [...roles] }), { minItems: 1 }),
  },
  closed,
)
/** What a field breaks, where the schema's own words are not for people. */
const inPlainWords: readonly { readonly of: RegExp; readonly fault: string }[] = [
  {
    of: /^\/token$/,
    fault: 'must be one or more visible ASCII characters without spaces, or clients could not send it',
  },
  { of: /^\/sha256$/, fault: 'must be the 64 hex digits of a SHA-256' },
  { of: /^\/roles\/\d+$/, fault: `must be one of ${roles.join(', ')}` },
]
const FORM = `{"tokens":[{"name","token" or "sha256","roles":[${roles.join('|')}]}]}`

/** Everything that is wrong with the file is reported at once. */
export function readTokensFile(path: string): Tokens {
  const refuse = (faults: readonly string[]) =>
    new SettingsError(faults.map((fault) => `the tokens file ${path} ${fault}`))
  let content: unknown
  try {
    content = JSON.parse(readFileSync(path, 'utf8'))
  } catch (error) {
    const unreadable = (error as NodeJS.ErrnoException).code
    // Not the parser's message: it quotes what it stumbled over, and that may be a token.
    throw refuse([unreadable === undefined ? 'is not JSON' : `cannot be read (${unreadable})`])
  }
  if (!Check(fileSchema, content)) throw refuse(inWords(faultsOf(fileSchema, content, '')))
  const { tokens } = content
  const departing = tokens.flatMap((token, at) => faultsOf(tokenSchema, token, `/tokens/${at}`))
  const { known, faults } = tokensOf(tokens.filter((token) => Check(tokenSchema, token)))
  if (departing.length + faults.length > 0) throw refuse([...inWords(departing), ...faults])
  return new Tokens(known)
}

/** The places that depart from the form, never what stands there: the name of a field may be a token, too. */
function faultsOf(schema: typeof fileSchema | typeof tokenSchema, content: unknown, at: string): string[] {
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

function inWords([first, ...others]: readonly string[]): string[] {
  if (first === undefined) return []
  return [
    `is not of the form ${FORM}: see ${first}`,
    ...others.map((fault) => `departs from its form: see ${fault}`),
  ]
}

function tokensOf(tokens: readonly Static<typeof tokenSchema>[]): { known: KnownToken[]; faults: string[] } {
  const seen = new Map<string, string>()
  const known: KnownToken[] = []
  const faults: string[] = []
  for (const { name, token, sha256, roles: granted } of tokens) {
    if ((token === undefined) === (sha256 === undefined)) {
      faults.push(`must give "${name}" either a token or its sha256`)
      continue
    }
    const digest = token === undefined ? Buffer.from(sha256 ?? '', 'hex') : digestOf(token)
    const twin = seen.get(digest.toString('hex'))
    if (twin === undefined) seen.set(digest.toString('hex'), name)
    else faults.push(`gives "${twin}" and "${name}" the same token`)
    known.push({ digest, roles: new Set(granted) })
  }
  return { known, faults }
}
