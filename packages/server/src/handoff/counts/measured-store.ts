import type { Store } from '../store.ts'
import type { StoreCounts, StoreVerb } from './store-counts.ts'

/** The same store; how long it takes for what is asked of it is noted on the way. */
export function measuredStore(store: Store, counts: StoreCounts): Store {
  const timed = <Argument, Result>(
    verb: StoreVerb,
    run: (argument: Argument) => Promise<Result>,
    note?: (argument: Argument, result: Result) => void,
  ) => {
    const verbCounts = counts.of(verb)
    return async (argument: Argument): Promise<Result> => {
      const began = performance.now()
      try {
        const result = await run(argument)
        verbCounts.seconds.add((performance.now() - began) / 1000)
        note?.(argument, result)
        return result
      } catch (error) {
        verbCounts.failures += 1
        throw error
      }
    }
  }
  return {
    handOff: timed(
      'handOff',
      (batch) => store.handOff(batch),
      (batch, answers) => counts.noteCommit(batch, answers),
    ),
    sweep: timed(
      'sweep',
      (order) => store.sweep(order),
      (_order, swept) => counts.noteSweep(swept),
    ),
    tidy: timed('tidy', (order) => store.tidy(order)),
    control: timed('control', (order) => store.control(order)),
    task: timed('task', (taskId) => store.task(taskId)),
    tasks: timed('tasks', (query) => store.tasks(query)),
    partitions: timed('partitions', (query) => store.partitions(query)),
    changes: timed('changes', (query) => store.changes(query)),
    recordSightings: timed('recordSightings', (sightings) => store.recordSightings(sightings)),
    instance: timed('instance', (instanceId) => store.instance(instanceId)),
    instances: timed('instances', (query) => store.instances(query)),
    probe: timed<void, void>('probe', () => store.probe()),
    audit: () => store.audit(),
    close: () => store.close(),
    // Whether there are these two says something about the store.
    ...(store.onHint === undefined ? {} : { onHint: (listener) => store.onHint?.(listener) }),
    ...(store.batching === undefined ? {} : { batching: store.batching }),
  }
}
