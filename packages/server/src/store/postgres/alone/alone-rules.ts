import type { AloneMode } from '../session/database-url.ts'

/** When being alone is worth it: beginning and ending take some milliseconds. */
export interface AloneRules {
  /** How many plain batches in a row must have been done by transactions before. */
  readonly afterBatches: number
  /** For how long transactions must have done nothing else. */
  readonly afterMillis: number
  /** How many partitions must be there to be handed out. */
  readonly leastReady: number
}

const WHEN_IT_PAYS: AloneRules = {
  afterBatches: 3,
  afterMillis: 20,
  leastReady: 64,
}
const WHENEVER_POSSIBLE: AloneRules = {
  afterBatches: 0,
  afterMillis: 0,
  leastReady: 1,
}
export const aloneRules: Readonly<Record<AloneMode, AloneRules>> = {
  'when-it-pays': WHEN_IT_PAYS,
  'whenever-possible': WHENEVER_POSSIBLE,
  never: WHEN_IT_PAYS,
}
