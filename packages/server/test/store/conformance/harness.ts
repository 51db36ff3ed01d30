import { afterEach, expect } from 'vitest'
import type { Policy } from '../../../src/handoff/rules/policy.ts'
import type { Store } from '../../../src/handoff/store.ts'
import { Driver } from './driver.ts'
import { testPolicy } from './test-policy.ts'

export { DAY, HOUR, MINUTE, testPolicy } from './test-policy.ts'

/** What a store has to bring along to be held against the conformance suite. */
export interface StoreHarness {
  readonly name: string
  /** A store with nothing in it, on a clock that stands still until it is told to move. */
  open(options: OpenOptions): Promise<StoreUnderTest>
}

export interface OpenOptions {
  readonly policy: Policy
  readonly clock: TestClock
}

export interface StoreUnderTest {
  /** The store as it is open now; another object after `reopen`. */
  readonly store: Store
  /** Closes and opens it again on the same data, as a restart of the service does. */
  reopen(policy?: Policy): Promise<void>
  /** Closes it and removes what it stored. */
  dispose(): Promise<void>
}

export class TestClock {
  /** Some day in 2026; a round number makes failures readable. */
  #now = 1_780_000_000_000

  readonly now = (): number => this.#now

  advance(millis: number): void {
    this.#now += millis
  }
}

/**
 * Gives the tests of a topic their stores. Whatever a test did, its counters must agree with its
 * rows in the end: every test is also a test of that.
 */
export function storesOf(harness: StoreHarness): (policy?: Partial<Policy>) => Promise<Driver> {
  const opened: { under: StoreUnderTest; driver: Driver }[] = []
  afterEach(async () => {
    for (const { under, driver } of opened.splice(0)) {
      const findings = await driver.store.audit()
      await under.dispose()
      expect(findings).toEqual([])
    }
  })
  return async (policy = {}) => {
    const clock = new TestClock()
    const under = await harness.open({ policy: { ...testPolicy, ...policy }, clock })
    const driver = new Driver(under, clock)
    opened.push({ under, driver })
    return driver
  }
}
