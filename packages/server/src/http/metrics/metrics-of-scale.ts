import { scaleOf } from '../../handoff/counts/scale.ts'
import { by, gauge, type Metric, type MetricSources } from './metric.ts'

/** Null while the store cannot be read. */
const scaleIn = ({ store: { backlog, fleet }, scaleTargetSeconds }: MetricSources) =>
  backlog === null || fleet === null ? null : scaleOf(backlog, fleet, scaleTargetSeconds, false)

/**
 * The values of `/scale` for all tasks. Tasks and tables are not labels, because their number grows without
 * limit; `/scale` itself can be filtered by them.
 */
export const scaleMetrics: readonly Metric[] = [
  gauge(
    'baton_desired_workers',
    [],
    'workers that would finish the backlog within --scale-target-seconds; at least 1 while there is any',
    (from) => scaleIn(from)?.desiredWorkers ?? [],
  ),
  gauge(
    'baton_backlog_work_seconds',
    [],
    'time under lease that the backlog takes at the measured pace; missing without a pace',
    (from) => scaleIn(from)?.workSeconds ?? [],
  ),
  gauge(
    'baton_workers',
    ['state'],
    'workers that are busy, idle, or lost: these hold leases and were not heard from',
    (from) => {
      const scale = scaleIn(from)
      if (scale === null) return []
      const { busy, idle, lost } = scale.workers
      return by({ busy, idle, lost })
    },
  ),
]
