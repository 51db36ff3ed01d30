import { StoreRefused } from '../../../handoff/store.ts'
import type { Connection } from './connection.ts'
import type { Connector } from './connector.ts'
import { statement } from './statement.ts'

/**
 * An idle pooler lends the session that came back last, so the first round tells; one that lends by turns gives itself
 * away to who asks twice in a row. A busy one may lend the same by chance.
 */
const ROUNDS = 8

const whichSession = statement('which-session', 'SELECT pg_backend_pid() AS session')

/**
 * A pooler that lends sessions by transaction looks like PostgreSQL. Unless it is known for one, settings that are
 * left on its sessions are met by others, and those of others by us: then an answer need not mean durable.
 */
export async function refuseLentSessions(connector: Pick<Connector, 'connect'>): Promise<void> {
  const one = await connector.connect()
  try {
    const other = await connector.connect()
    try {
      if (!(await areLent(one, other))) return
    } finally {
      await other.close()
    }
  } finally {
    await one.close()
  }
  throw new StoreRefused(
    'a pooler in front of PostgreSQL lends sessions by transaction; add pooling=transaction to the database URL, and listen=host:port with the address of PostgreSQL itself',
  )
}

/** Both are open all the time. Had each a session of its own, each would always meet that one and never the other's. */
async function areLent(one: Connection, other: Connection): Promise<boolean> {
  const met = new Set<unknown>()
  for (let round = 0; round < ROUNDS; round += 1) {
    const ofOne = new Set([await sessionOf(one), await sessionOf(one)])
    const ofOther = new Set([await sessionOf(other), await sessionOf(other)])
    for (const session of [...ofOne, ...ofOther]) met.add(session)
    if (ofOne.size + ofOther.size !== 2 || met.size !== 2) return true
  }
  return false
}

async function sessionOf(connection: Connection): Promise<unknown> {
  const [row] = await connection.run(whichSession)
  return row?.['session']
}
