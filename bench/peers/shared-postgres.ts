import pg from 'pg'
import type { CleanUp } from '../harness/clean-up.ts'
import { type RunningPostgres, startPostgres } from '../harness/postgres.ts'
import type { PeerDatabase } from './peer.ts'

/** One PostgreSQL for all that need one, started with the first of them. */
export class SharedPostgres {
  readonly #cleanUp: CleanUp
  #running: Promise<RunningPostgres> | undefined

  constructor(cleanUp: CleanUp) {
    this.#cleanUp = cleanUp
  }

  async database(name: string): Promise<PeerDatabase> {
    this.#running ??= startPostgres(this.#cleanUp)
    const postgres = await this.#running
    const url = await postgres.createDatabase(name)
    return { url, postmasterPid: postgres.pid, tidy: () => tidy(url) }
  }
}

async function tidy(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query('VACUUM (ANALYZE)')
  await client.end()
}
