export type Outcome = 'done' | 'failed' | 'released'

export interface Held {
  readonly name: string
  readonly leaseId: string
}

interface Known {
  /** Whether the call-back that named it was answered. */
  accepted: boolean
  done: boolean
  /** The newest lease that reached a client, and the outcome of its settle, if one was sent. */
  lease: { readonly id: string; sent: Outcome | null } | null
}

/**
 * What the clients know together from the answers that reached them: the only record of what the service has
 * acknowledged. Leases are longer than the test, so none of them can have expired.
 */
export class ClientLedger {
  readonly violations: string[] = []
  readonly #partitions = new Map<string, Known>()
  /** Pulls without a key that were never answered, by the number of partitions that they may have leased. */
  lostLeases = 0
  answers = 0
  /** Accepted, and not acknowledged as done. */
  unfinished = 0

  get accepted(): string[] {
    return [...this.#partitions].filter(([, { accepted }]) => accepted).map(([name]) => name)
  }

  callingBack(names: readonly string[]): void {
    for (const name of names) this.#partitions.set(name, { accepted: false, done: false, lease: null })
  }

  calledBack(names: readonly string[]): void {
    for (const name of names) {
      const known = this.#partitions.get(name)
      if (known === undefined || known.accepted) continue
      known.accepted = true
      if (!known.done) this.unfinished += 1
    }
  }

  /** A partition reached a client under a new lease. */
  received({ name, leaseId }: Held): void {
    const known = this.#partitions.get(name)
    if (known === undefined) {
      this.violations.push(`${name} was handed out, but never called back`)
      return
    }
    if (known.done) this.violations.push(`${name} was handed out after its done was acknowledged`)
    else if (known.lease?.sent === null)
      this.violations.push(`${name} was handed out as ${leaseId} while ${known.lease.id} was still live`)
    else if (known.lease?.sent === 'done')
      this.violations.push(
        `${name} was handed out as ${leaseId} although its lease was settled as done or lives`,
      )
    known.lease = { id: leaseId, sent: null }
  }

  settling({ name, leaseId }: Held, outcome: Outcome): void {
    const { lease } = this.#partitions.get(name) ?? {}
    if (lease?.id === leaseId) lease.sent = outcome
  }

  /** `wasRepeated`: an earlier attempt of the same settlement was not answered. */
  settled(
    { name, leaseId }: Held,
    outcome: Outcome,
    refusal: string | undefined,
    wasRepeated: boolean,
  ): void {
    // If the service had received the first attempt, another worker may hold the partition when it is sent
    // again.
    const isExcused = wasRepeated && outcome !== 'done' && refusal === 'lease_lost'
    if (refusal !== undefined && !isExcused)
      this.violations.push(`${outcome} for ${name} under ${leaseId} was refused: ${refusal}`)
    const known = this.#partitions.get(name)
    if (known === undefined || known.done || outcome !== 'done' || refusal !== undefined) return
    known.done = true
    if (known.accepted) this.unfinished -= 1
  }

  repeated(asked: readonly Held[], again: readonly Held[]): void {
    const live = asked.filter(({ name, leaseId }) => {
      const { lease } = this.#partitions.get(name) ?? {}
      return lease?.id === leaseId && lease.sent === null
    })
    const ids = again.map(({ leaseId }) => leaseId)
    if (live.map(({ leaseId }) => leaseId).join() !== ids.join())
      this.violations.push(
        `the repeat of a pull gave ${ids}, its live leases were ${live.map((one) => one.leaseId)}`,
      )
  }

  /** Checks the final state, as the service shows it. */
  compare(shown: ReadonlyMap<string, string>): void {
    for (const [name, { accepted, done }] of this.#partitions) {
      const state = shown.get(name)
      if (accepted && state === undefined) this.violations.push(`${name} was accepted and is missing`)
      if (done && state !== 'done')
        this.violations.push(`${name} was acknowledged as done and is shown ${state}`)
    }
  }
}
