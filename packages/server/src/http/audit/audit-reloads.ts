import { type LiveSubscriptions, subscriptionsDetail } from '../../webhooks/live-subscriptions.ts'
import type { LiveTokens, TokensReload } from '../admission/live-tokens.ts'
import type { TlsFiles, TlsReload } from '../tls-files.ts'
import type { AuditLog } from './audit-log.ts'

/** Notes when files of the service were read again. */
export function auditReloads(
  audit: AuditLog,
  tokens: LiveTokens | null,
  tls: TlsFiles | null,
  subscriptions: LiveSubscriptions | null,
): void {
  const note = (action: string, outcome: 'applied' | 'refused', detail: string) => {
    audit.note({
      kind: 'reload',
      name: null,
      address: null,
      action,
      outcome: outcome === 'applied' ? 'done' : outcome,
      detail,
    })
  }
  tokens?.onReload((reload) => note('tokens file', reload.outcome, tokensDetail(reload)))
  subscriptions?.onReload((reload) => note('subscriptions file', reload.outcome, subscriptionsDetail(reload)))
  tls?.onReload((reload) => note('certificate', reload.outcome, tlsDetail(reload)))
}

function tokensDetail(reload: TokensReload): string {
  if (reload.outcome === 'refused') return reload.faults.join('; ')
  const parts = [
    ...(reload.added.length > 0 ? [`new: ${reload.added.join(', ')}`] : []),
    ...(reload.removed.length > 0 ? [`removed: ${reload.removed.join(', ')}`] : []),
  ]
  return parts.length === 0 ? 'no token changed' : parts.join('; ')
}

const tlsDetail = (reload: TlsReload): string =>
  reload.outcome === 'refused' ? reload.fault : `${reload.subject}, valid to ${reload.validTo}`
