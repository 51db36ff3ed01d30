import type { StoreCounts } from './counts/counts.ts'
import { eachVerb, type HandOffAnswers, runVerb, type Store, type StoreVerb } from './store.ts'
import type { StoreHealth } from './store-health.ts'

/**
 * Wraps a store to measure its calls and to detect the end of an outage: a successful write ends it. The
 * heartbeat of this node is such a write, so recovery is noticed without other requests. Reads prove nothing:
 * a full disk can be read.
 */
export function watchedStore(store: Store, counts: StoreCounts, storeHealth: StoreHealth): Store {
  const succeeded: {
    [Verb in StoreVerb]?: (...call: [Parameters<Store[Verb]>[0], Awaited<ReturnType<Store[Verb]>>]) => void
  } = {
    runBatch: (batch, answers) => {
      counts.noteCommit(batch, answers)
      if (hasWritten(answers)) storeHealth.recovered()
    },
    sweep: (_request, swept) => counts.noteSweep(swept),
    recordHeartbeats: () => storeHealth.recovered(),
    probe: () => storeHealth.recovered(),
  }
  const verbs = eachVerb((verb) => {
    const verbCounts = counts.of(verb)
    const note = succeeded[verb] as ((argument: unknown, result: unknown) => void) | undefined
    return async (argument) => {
      const began = performance.now()
      try {
        const result = await runVerb(store, verb, argument)
        verbCounts.seconds.add((performance.now() - began) / 1000)
        note?.(argument, result)
        return result
      } catch (error) {
        verbCounts.failures += 1
        throw error
      }
    }
  })
  const { cluster } = store
  return { ...verbs, runsAlone: (callBack) => store.runsAlone(callBack), close: () => store.close(), cluster }
}

/**
 * Whether the batch committed something. Empty pulls write nothing. Settlements are ignored, because a
 * repeated settlement writes nothing and has the same answer as the first. The heartbeat detects recovery
 * within seconds.
 */
function hasWritten({ renews, undone, callBacks, pulls }: HandOffAnswers): boolean {
  return (
    undone > 0 ||
    renews.some((verdicts) => verdicts.some(({ refused }) => refused === null)) ||
    callBacks.some((result) => result.kind === 'stored' && result.accepted > 0) ||
    pulls.some(({ partitions, repeated }) => partitions.length > 0 && !repeated)
  )
}
