import { recount } from '../../../packages/server/test/support/recount.ts'

// Recounts everything in a store that no node has open. The only place where chaos reads a store's internals.

export const auditEmbedded = (folder: string): Promise<readonly string[]> => recount({ data: folder })

export const auditPostgres = (url: string): Promise<readonly string[]> => recount({ databaseUrl: url })
