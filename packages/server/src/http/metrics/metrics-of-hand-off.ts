import { by, counter, type Metric, type Sample } from './metric.ts'

/** Partitions and leases on this node. */
export const handOffMetrics: readonly Metric[] = [
  counter(
    'baton_called_back_partitions_total',
    ['result'],
    'partitions that were called back: accepted, or a duplicate of one accepted before',
    ({ handOff }) => by(handOff.counts.calledBack),
  ),
  counter(
    'baton_pulls_total',
    ['answer'],
    'pulls answered, those of a settle included: with partitions, with nothing, or repeated by a key',
    ({ handOff }) => by(handOff.counts.pulls),
  ),
  counter(
    'baton_handed_out_partitions_total',
    [],
    'partitions handed out',
    ({ handOff }) => handOff.counts.handedOut.partitions,
  ),
  counter(
    'baton_handed_out_records_total',
    [],
    'records of the partitions handed out',
    ({ handOff }) => handOff.counts.handedOut.records,
  ),
  counter(
    'baton_settlements_total',
    ['outcome'],
    'settlements accepted, repeated ones included: done, failed or released',
    ({ handOff }) => by(handOff.counts.settlements),
  ),
  counter('baton_renewed_leases_total', [], 'leases renewed', ({ handOff }) => handOff.counts.renewed),
  counter(
    'baton_refused_leases_total',
    ['verb', 'code'],
    'leases that a settle or renew named without effect, by error code',
    ({ handOff }) =>
      Object.entries(handOff.counts.refused).flatMap(([verb, codes]) =>
        Object.entries(codes).map(([code, count]): Sample => [[verb, code], count]),
      ),
  ),
  counter(
    'baton_expired_leases_total',
    ['parked'],
    'leases that expired; parked is yes where no attempt was left for the partition',
    ({ handOff: { storeCounts } }) => [
      [['no'], storeCounts.expired - storeCounts.expiredForGood],
      [['yes'], storeCounts.expiredForGood],
    ],
  ),
  counter(
    'baton_undone_leases_total',
    [],
    'leases taken back because the client was gone before its answer',
    ({ handOff }) => handOff.storeCounts.undone,
  ),
]
