import { errorCodes } from './error-codes.ts'

export const refusalCodes = ['lease_unknown', 'lease_lost', 'lease_settled', 'task_cancelled'] as const
export type RefusalCode = (typeof refusalCodes)[number]

/** Why a lease is refused, for a person. */
export function refusalDetail(code: RefusalCode): string {
  return `${errorCodes[code].meaning} ${errorCodes[code].remedy}`
}
