import { afterEach, expect } from 'vitest'
import { quiet } from '../../../../../test/support/quiet-log.ts'
import { OpenWorkMeter } from '../../../src/handoff/open-work-meter.ts'
import type { Policy } from '../../../src/handoff/rules/policy.ts'
import type { Store } from '../../../src/handoff/store.ts'
import { Driver } from './driver.ts'
import { testPolicy } from './test-policy.ts'

export { DAY, HOUR, MINUTE, testPolicy } from './test-policy.ts'

/** What a store has to provide to run the conformance suite. */
export interface StoreHarness {
  readonly name: string
  /** An empty store, with a clock that is stopped until the test moves it. */
  open(options: OpenOptions): Promise<StoreUnderTest>
}

export interface OpenOptions {
  readonly policy: Policy
  readonly clock: TestClock
  readonly openWork?: OpenWorkMeter | undefined
}

export interface StoreUnderTest {
  /** The open store; another object after `reopen`. */
  readonly store: Store
  /** Closes and opens it again on the same data, as a restart of the service does. */
  reopen(policy?: Policy): Promise<void>
  /** Contradictions in its data. */
  recount(): Promise<readonly string[]>
  /** Closes it and removes what it stored. */
  dispose(): Promise<void>
}

export class TestClock {
  /** A day in 2026; a round number makes failures readable. */
  #now = 1_780_000_000_000

  readonly now = (): number => this.#now

  advance(millis: number): void {
    this.#now += millis
  }
}

/**
 * Provides the tests of a topic with stores. At the end of each test the counters must match the rows, so
 * every test also checks that.
 */
export function storesOf(
  harness: StoreHarness,
): (policy?: Partial<Policy>, limits?: OpenWorkMeter['limits']) => Promise<Driver> {
  const opened: { under: StoreUnderTest; driver: Driver }[] = []
  afterEach(async () => {
    for (const { under, driver } of opened.splice(0)) {
      const findings = await driver.recount()
      await under.dispose()
      expect(findings).toEqual([])
    }
  })
  return async (policy = {}, limits) => {
    const openWork = limits && new OpenWorkMeter(limits, quiet)
    const clock = new TestClock()
    const under = await harness.open({ policy: { ...testPolicy, ...policy }, clock, openWork })
    const driver = new Driver(under, clock)
    opened.push({ under, driver })
    return driver
  }
}
