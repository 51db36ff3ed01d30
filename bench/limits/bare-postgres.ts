import pg from 'pg'
import { answerCalls } from '../harness/helper-process.ts'
import { LatencySamples, type LatencySummary } from '../harness/statistics.ts'
import { claimByHand, fillByHand, HAND_WRITTEN_SCHEMA, settleByHand } from './postgres-loop.ts'

let pool: pg.Pool | undefined

function connected(): pg.Pool {
  if (!pool) throw new Error('open the database first')
  return pool
}

async function open({ url, connections }: { url: string; connections: number }): Promise<void> {
  pool = new pg.Pool({ connectionString: url, max: connections, min: connections })
  // The postmaster closes its connections at the end of the run; that is no failure of the loop.
  pool.on('error', () => {})
  await pool.query(HAND_WRITTEN_SCHEMA)
}

function fill({ partitions }: { partitions: number }): Promise<void> {
  return fillByHand(connected(), partitions)
}

export interface BarePostgresInput {
  consumers: number
  batch: number
  seconds: number
}

export interface BarePostgresResult {
  partitions: number
  seconds: number
  latency: LatencySummary
}

/** Runs one loop per consumer; each claims and settles through the same pool. */
async function pairs({ consumers, batch, seconds }: BarePostgresInput): Promise<BarePostgresResult> {
  const db = connected()
  const latencies = new LatencySamples()
  const startedAt = performance.now()
  const deadline = startedAt + seconds * 1000
  let partitions = 0
  const consume = async () => {
    while (performance.now() < deadline) {
      const claimedAt = performance.now()
      const claimed = await claimByHand(db, batch)
      if (claimed.length === 0) return
      const settledAt = performance.now()
      latencies.add(settledAt - claimedAt)
      await settleByHand(db, claimed)
      latencies.add(performance.now() - settledAt)
      partitions += claimed.length
    }
  }
  await Promise.all(Array.from({ length: consumers }, consume))
  return { partitions, seconds: (performance.now() - startedAt) / 1000, latency: latencies.summary() }
}

async function close(): Promise<void> {
  await pool?.end()
  pool = undefined
}

const calls = { open, fill, pairs, close }

export type BarePostgresCalls = typeof calls

answerCalls(calls)
