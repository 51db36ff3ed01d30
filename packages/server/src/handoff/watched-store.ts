import type { StoreCounts, StoreVerb } from './counts/store-counts.ts'
import { hasWritten, type Outage } from './outage.ts'
import type { Store } from './store.ts'

/**
 * The same store; on the way it is noted how long it takes for what is asked of it, and that it can commit. What it writes
 * each time it is asked ends an outage. This node's heartbeat is among it, so that the end is noticed where nobody else
 * asks. Looking proves nothing: a full disk can be read.
 */
export function watchedStore(store: Store, counts: StoreCounts, outage: Outage): Store {
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
      (batch, answers) => {
        counts.noteCommit(batch, answers)
        if (hasWritten(answers)) outage.over()
      },
    ),
    sweep: timed(
      'sweep',
      (order) => store.sweep(order),
      (_order, swept) => counts.noteSweep(swept),
    ),
    tidy: timed('tidy', (order) => store.tidy(order)),
    control: timed('control', (order) => store.control(order)),
    releaseInstance: timed('releaseInstance', (order) => store.releaseInstance(order)),
    task: timed('task', (taskId) => store.task(taskId)),
    tasks: timed('tasks', (query) => store.tasks(query)),
    partitions: timed('partitions', (query) => store.partitions(query)),
    throughput: timed('throughput', (query) => store.throughput(query)),
    changes: timed('changes', (query) => store.changes(query)),
    subscriptions: timed('subscriptions', (order) => store.subscriptions(order)),
    deliver: (order) => store.deliver(order),
    recordSightings: timed(
      'recordSightings',
      (sightings) => store.recordSightings(sightings),
      () => outage.over(),
    ),
    instance: timed('instance', (instanceId) => store.instance(instanceId)),
    instances: timed('instances', (query) => store.instances(query)),
    probe: timed<void, void>(
      'probe',
      () => store.probe(),
      () => outage.over(),
    ),
    audit: () => store.audit(),
    close: () => store.close(),
    // Whether there are these says something about the store.
    ...(store.onHint === undefined ? {} : { onHint: (listener) => store.onHint?.(listener) }),
    ...(store.onLead === undefined ? {} : { onLead: (listener) => store.onLead?.(listener) }),
    ...(store.batching === undefined ? {} : { batching: store.batching }),
  }
}
