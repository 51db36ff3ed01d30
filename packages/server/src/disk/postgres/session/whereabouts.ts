import pg from 'pg'
import { parseDatabaseUrl } from './database-url.ts'

/**
 * Where the driver will look, for people: host, port and database, and neither user nor password. The driver is asked
 * because what a URL leaves out it takes from the environment, or makes up.
 */
export function whereabouts(url: string): string {
  return parseDatabaseUrl(url)
    .hosts.map((connectionString) => {
      const { host, port, database } = new pg.Client({ connectionString })
      return `${host}:${port}/${database}`
    })
    .join(', ')
}
