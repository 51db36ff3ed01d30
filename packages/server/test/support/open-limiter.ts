import { quiet } from '../../../../test/support/quiet-log.ts'
import { Proxies } from '../../src/http/admission/proxies.ts'
import { noTokens, type TokenLookup } from '../../src/http/admission/tokens.ts'
import { ClientLimiter } from '../../src/http/limits/limiter.ts'
import type { ClientLimits } from '../../src/http/limits/limits.ts'

const plenty = 1_000_000

/** A limiter that is never reached, unless a test overrides it. */
export function openLimiter(
  changed: Partial<ClientLimits> = {},
  tokens: Pick<TokenLookup, 'nameOf'> = noTokens,
  proxies: readonly string[] = [],
): ClientLimiter {
  const limits: ClientLimits = {
    connections: plenty,
    connectionsPerAddress: plenty,
    requestsPerConnection: 100,
    waitingPulls: plenty,
    waitingPullsPerCaller: plenty,
    receivedBytes: 2 ** 30,
    unsentBytes: 2 ** 30,
    callBackPartitions: plenty,
    callBackLevels: plenty,
    requestMillis: 300_000,
    answerMillis: 60_000,
    overloadMillis: plenty,
    requestsPerSecond: 0,
    ...changed,
  }
  return new ClientLimiter({
    limits,
    tokens,
    proxies: new Proxies(proxies),
    log: quiet,
    waitingPulls: () => 0,
  })
}
