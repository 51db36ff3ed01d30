import type { Disk } from '../disk.ts'
import type { OpenWorkLimits } from '../rules/open-work-limits.ts'
import type { Policy } from '../rules/policy.ts'
import type { MemoryBounds } from './state/memory.ts'

/** Inputs of the engine, injected so that it stays deterministic. */
export interface EngineContext {
  /** What a verb may read. It awaits nothing else. */
  readonly disk: EngineDisk
  /** Lets other work use the event loop. */
  readonly nextIteration: () => Promise<void>
  readonly limits: OpenWorkLimits & Pick<MemoryBounds, 'partitions'>
  readonly policy: Policy
  readonly now: number
  /** From 0 up to 1. */
  readonly random: () => number
  readonly secret: () => string
}

export type EngineDisk = Pick<
  Disk,
  | 'tasksNamed'
  | 'tasksById'
  | 'lanesById'
  | 'lanesOf'
  | 'lanesFrom'
  | 'partitionsById'
  | 'checkpoints'
  | 'partitionsNamed'
  | 'rows'
  | 'waiting'
  | 'keys'
  | 'known'
  | 'doneRows'
>
