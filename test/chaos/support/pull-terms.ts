import { randomUUID } from 'node:crypto'
import type { Chance } from './chance.ts'
import type { Scene, Size } from './scene.ts'

/** How a worker asks for partitions. */
export interface PullTerms {
  readonly headers: Readonly<Record<string, string>>
  readonly batch: number
  readonly key: string | null
}

const SMALL = 5
const LARGE = 700
const CALM = 200

export function pullTerms(chance: Chance, { isStormy, size }: Scene): PullTerms {
  const batch = isStormy ? someBatch(chance, size) : CALM
  const preferences = [`batch=${batch}`]
  if (isStormy && chance.happens(0.1 * size.contrary)) preferences.push(`records=${chance.between(1, 6000)}`)
  if (chance.happens(0.4)) preferences.push('wait=1')
  // Nobody may have used it before, not even an earlier run with the same seed.
  const key = chance.happens(0.8) ? randomUUID() : null
  const headers = { prefer: preferences.join(', '), ...(key === null ? {} : { 'idempotency-key': key }) }
  return { headers, batch, key }
}

function someBatch(chance: Chance, { batch, contrary }: Size): number {
  const draw = chance.below(100)
  return draw < 35 ? chance.between(1, SMALL) : draw < 100 - 4 * contrary ? chance.between(1, batch) : LARGE
}
