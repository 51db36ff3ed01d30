import { hash, timingSafeEqual } from 'node:crypto'
import { readFileSync } from 'node:fs'
import Type, { type Static } from 'typebox'
import { Check, Errors } from 'typebox/schema'
import { SettingsError } from '../../settings-error.ts'

export const roles = ['producer', 'worker', 'operator', 'viewer'] as const
export type Role = (typeof roles)[number]

const tokenSchema = Type.Object(
  {
    name: Type.String({ minLength: 1 }),
    token: Type.Optional(Type.String({ pattern: '^[\\x21-\\x7e]+$' })),
    sha256: Type.Optional(Type.String({ pattern: '^[0-9a-fA-F]{64}$' })),
    roles: Type.Array(Type.Unsafe<Role>({ type: 'string', enum: [...roles] }), { minItems: 1 }),
  },
  { additionalProperties: false },
)

const fileSchema = Type.Object(
  { tokens: Type.Array(tokenSchema, { minItems: 1 }) },
  { additionalProperties: false },
)

interface KnownToken {
  readonly digest: Buffer
  readonly roles: ReadonlySet<Role>
}

export class Tokens {
  readonly #known: readonly KnownToken[]

  constructor(known: readonly KnownToken[]) {
    this.#known = known
  }

  /** All are compared, whole digests each: how long it takes says nothing about what a token looks like. */
  rolesOf(token: string): ReadonlySet<Role> | undefined {
    const digest = digestOf(token)
    let found: ReadonlySet<Role> | undefined
    for (const known of this.#known) if (timingSafeEqual(known.digest, digest)) found = known.roles
    return found
  }
}

export function readTokensFile(path: string): Tokens {
  const refuse = (why: string) => new SettingsError([`the tokens file ${path} ${why}`])
  let content: unknown
  try {
    content = JSON.parse(readFileSync(path, 'utf8'))
  } catch (error) {
    const unreadable = (error as NodeJS.ErrnoException).code
    // Not the parser's message: it quotes what it stumbled over, and that may be a token.
    throw refuse(unreadable === undefined ? 'is not JSON' : `cannot be read (${unreadable})`)
  }
  if (!Check(fileSchema, content)) throw refuse(faultOf(content))
  return tokensOf(content, refuse)
}

function tokensOf({ tokens }: Static<typeof fileSchema>, refuse: (why: string) => Error): Tokens {
  const seen = new Map<string, string>()
  const known = tokens.map(({ name, token, sha256, roles: granted }) => {
    if ((token === undefined) === (sha256 === undefined)) {
      throw refuse(`must give "${name}" either a token or its sha256`)
    }
    const digest = token === undefined ? Buffer.from(sha256 ?? '', 'hex') : digestOf(token)
    const twin = seen.get(digest.toString('hex'))
    if (twin !== undefined) throw refuse(`gives "${twin}" and "${name}" the same token`)
    seen.set(digest.toString('hex'), name)
    return { digest, roles: new Set(granted) }
  })
  return new Tokens(known)
}

/** Names the first place that departs from the form, never what stands there. */
function faultOf(content: unknown): string {
  const [, [fault]] = Errors(fileSchema, content)
  const place = fault?.instancePath || '/'
  return `is not of the form {"tokens":[{"name","token" or "sha256","roles":[${roles.join('|')}]}]}: see ${place}, which ${fault?.message}`
}

function digestOf(token: string): Buffer {
  return hash('sha256', token, 'buffer')
}
