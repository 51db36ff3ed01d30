import { refusalDetail } from '@baton/protocol'
import type { RefusalCode } from '../../handoff/rules/settlement.ts'

interface RefusedLease {
  readonly leaseId: string
  readonly code: RefusalCode
}

/** The wire's list of leases for which a request had no effect, each with words for a person. */
export function refusalsJson(refused: readonly RefusedLease[]): string {
  if (refused.length === 0) return '[]'
  return JSON.stringify(refused.map(({ leaseId, code }) => ({ leaseId, code, detail: refusalDetail(code) })))
}
