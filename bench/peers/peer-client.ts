/** What the consumer process does with one peer, through that peer's own client library. */
export interface PeerClient {
  fill(partitions: number): Promise<void>
  consume(input: ConsumeInput): Promise<ConsumeResult>
  /** The number of jobs left, for peers where a measurement takes more than it acknowledges. */
  left?(): Promise<number>
}

export interface ConsumeInput {
  /** Which of the peer's variants, where it has several. */
  way: string
  consumers: number
  batch: number
  seconds: number
}

export interface ConsumeResult {
  partitions: number
  seconds: number
  clientCpuSeconds: number
}

/** Counts acknowledged partitions from the first to the last within the time. */
export class Window {
  readonly #deadline: number
  readonly #cpuBefore = process.cpuUsage()
  #startedAt = performance.now()
  #endedAt = this.#startedAt
  #partitions = 0

  constructor(seconds: number) {
    this.#deadline = this.#startedAt + seconds * 1000
  }

  get open(): boolean {
    return performance.now() < this.#deadline
  }

  get remainingMs(): number {
    return Math.max(0, this.#deadline - performance.now())
  }

  acknowledged(partitions: number): void {
    this.#partitions += partitions
    this.#endedAt = performance.now()
  }

  /** For libraries that start their own worker: its start-up is not measured. */
  restart(): void {
    this.#startedAt = performance.now()
  }

  result(): ConsumeResult {
    const cpu = process.cpuUsage(this.#cpuBefore)
    return {
      partitions: this.#partitions,
      seconds: (this.#endedAt - this.#startedAt) / 1000,
      clientCpuSeconds: (cpu.user + cpu.system) / 1e6,
    }
  }
}

/**
 * Runs one loop per consumer. A step takes and acknowledges jobs and returns their number (0: nothing left).
 */
export async function consumeInLoops(
  { consumers, seconds }: ConsumeInput,
  step: (consumer: number) => Promise<number>,
): Promise<ConsumeResult> {
  const window = new Window(seconds)
  const loop = async (consumer: number) => {
    while (window.open) {
      const partitions = await step(consumer)
      if (partitions === 0) return
      window.acknowledged(partitions)
    }
  }
  await Promise.all(Array.from({ length: consumers }, (_, consumer) => loop(consumer)))
  return window.result()
}

let made = 0

/** The five fields of a partition descriptor, as every peer's payload. */
export function descriptor(): Record<string, string | number> {
  const index = ++made
  return {
    taskId: 'bench-17',
    computeTableName: 'bench.result_17',
    partition_name: `bench-17-${index % 4}-${index}`,
    record_count: 1_000 + (index % 9_000),
    priorityLevel: index % 4,
  }
}

/** Calls `store` with groups of descriptors until there are `count`. */
export async function fillInGroups(
  partitions: number,
  groupSize: number,
  store: (group: Record<string, string | number>[]) => Promise<unknown>,
): Promise<void> {
  for (let left = partitions; left > 0; left -= groupSize) {
    await store(Array.from({ length: Math.min(groupSize, left) }, descriptor))
  }
}
