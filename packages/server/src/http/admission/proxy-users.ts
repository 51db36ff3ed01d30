import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { FastifyInstance } from 'fastify'
import { admittedRequestOf } from '../forwarded-client.ts'
import type { Proxies } from './proxies.ts'
import { bearerToken } from './tokens.ts'

export interface ProxyUser {
  readonly name: string
  readonly groups: readonly string[]
}

const USER_HEADER = 'x-forwarded-user'
const GROUPS_HEADER = 'x-forwarded-groups'

const LONGEST_NAME = 200
const MOST_GROUPS = 500

const users = new WeakMap<IncomingHttpHeaders, ProxyUser>()

/** The user of a request that has no token. Of a forwarded request, the follower has found out who it is. */
export function userOf(headers: IncomingHttpHeaders): ProxyUser | undefined {
  const client = admittedRequestOf(headers)
  return client === undefined ? users.get(headers) : (client.user ?? undefined)
}

/** Notes the users that these proxies name. From other addresses the headers are ignored. Must run before admission. */
export function signInByProxies(app: FastifyInstance, proxies: Proxies): void {
  app.addHook('onRequest', ({ raw }, _reply, done) => {
    const { headers, socket } = raw
    if (
      headers[USER_HEADER] !== undefined &&
      admittedRequestOf(headers) === undefined &&
      proxies.isPeer(socket)
    ) {
      const user = namedUser(raw)
      if (user !== undefined) users.set(headers, user)
    }
    done()
  })
}

/** A token comes first. A header that is there twice may be of the client, so it names nobody. */
function namedUser({ headers, rawHeaders }: IncomingMessage): ProxyUser | undefined {
  if (bearerToken(headers.authorization) !== undefined) return undefined
  const times = (header: string) =>
    rawHeaders.filter((text, at) => at % 2 === 0 && text.toLowerCase() === header).length
  if (times(USER_HEADER) > 1 || times(GROUPS_HEADER) > 1) return undefined
  const name = textOf(headers[USER_HEADER])
  if (name === '' || [...name].length > LONGEST_NAME || /\p{Cc}/u.test(name)) return undefined
  const groups = textOf(headers[GROUPS_HEADER]).split(',', MOST_GROUPS)
  return { name, groups: groups.map((group) => group.trim()).filter((group) => group !== '') }
}

/** Node reads headers as Latin-1; proxies write UTF-8. */
const textOf = (header: string | string[] | undefined): string =>
  Buffer.from(String(header ?? ''), 'latin1')
    .toString('utf8')
    .trim()
