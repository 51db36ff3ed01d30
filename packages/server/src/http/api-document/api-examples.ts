import { type PartitionState, refusalDetail, type StateCounts } from '@baton/protocol'

/** Example request and response of an operation. */
interface OperationExample {
  readonly request?: unknown
  readonly answer: unknown
}

const taskId = 'orders-2026-03'
const at = (time: string) => `2026-03-01T${time}.000Z`

const countsOf = (given: Partial<Record<PartitionState, number>>): StateCounts => {
  const counts = { ready: 0, held: 0, leased: 0, delayed: 0, parked: 0, done: 0, cancelled: 0, ...given }
  return { total: Object.values(counts).reduce((sum, count) => sum + count, 0), ...counts }
}

const summary = {
  taskId,
  state: 'open',
  generation: 1,
  sealed: false,
  expectedPartitions: null,
  missingPartitions: null,
  partitions: countsOf({ done: 26, leased: 4, ready: 11, parked: 1 }),
  records: countsOf({ done: 650_000, leased: 100_000, ready: 275_000, parked: 25_000 }),
  firstCallBackAt: at('11:40:00'),
  lastCallBackAt: at('11:41:30'),
  recordsPerSecond: 2500,
  etaSeconds: 160,
  etaWaitsFor: 'pace',
}

const level = {
  level: 0,
  open: true,
  partitions: summary.partitions,
  records: summary.records,
  meanAttemptSeconds: 14,
  indexes: { first: 0, last: 42, missing: 1, gaps: [{ first: 17, last: 17 }] },
}

const worker = {
  instanceId: 'loader-7',
  role: 'worker',
  status: 'up',
  firstSeenAt: at('11:40:02'),
  lastSeenAt: at('12:00:00'),
  leases: 4,
  totals: {
    pulls: 9,
    partitions: 13,
    records: 325_000,
    done: 8,
    failed: 1,
    released: 0,
    callBacks: 0,
    calledBack: 0,
  },
}

const subscription = {
  id: 'sub_Zk3vU0f1pQ7cXw2d',
  name: null,
  url: 'https://pipeline.example/hooks/baton',
  types: ['task.done', 'task.stalled'],
  taskPrefix: 'orders-',
  state: 'active',
  reason: null,
  createdAt: at('11:00:00'),
}
const secret = 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD'
const delivery = {
  event: 412,
  id: 'evt_9aQx3LmT0bYw5KcE',
  type: 'task.done',
  taskId,
  time: at('12:01:00'),
  state: 'delivered',
  attempts: 1,
  attemptedAt: at('12:01:01'),
  nextAttemptAt: null,
  status: 204,
  error: null,
  durationSeconds: 0.041,
}
const cloudEvent = {
  specversion: '1.0',
  id: delivery.id,
  source: '/baton',
  type: 'task.done',
  subject: taskId,
  time: delivery.time,
  datacontenttype: 'application/json',
  sequence: '0000000000000412',
  data: { taskId, generation: 1, partitions: { total: 42, done: 42, parked: 0 } },
}

const leaseId = '1-1-5rZgDvRtAkmEHc4F'
const lease = { id: leaseId, attempt: 1, expiresAt: at('12:05:00'), expiresInSeconds: 300 }

const settings = {
  leaseSeconds: 300,
  maxAttempts: 5,
  backoffSeconds: 10,
  backoffMaxSeconds: 600,
  levelBarrier: false,
  maxLeases: null,
  weight: 1,
  own: [],
}

const control = (state: string, changed: number, request?: unknown): OperationExample => ({
  ...(request === undefined ? {} : { request }),
  answer: { taskId, state, changed },
})

/**
 * Examples by operationId. A test validates each against the schemas of its operation, and checks that none
 * is missing.
 */
export function operationExamples(tableField: string): Readonly<Record<string, OperationExample>> {
  const descriptor = (priorityLevel: number, index: number, record_count: number) => ({
    taskId,
    [tableField]: 'results.orders',
    partition_name: `${taskId}-${priorityLevel}-${index}`,
    record_count,
    priorityLevel,
  })
  const leaseState = {
    state: 'parked',
    attempts: 5,
    reportedRecords: null,
    calledBackAt: at('11:40:00'),
    settledAt: null,
  }
  const attempt = {
    attempt: 5,
    holder: 'loader-7',
    startedAt: at('11:58:00'),
    endedAt: at('11:59:30'),
    outcome: 'failed',
    reason: 'compute table is locked',
    records: null,
  }
  const past = { lastReason: 'compute table is locked', history: [attempt] }
  const row = { holder: null, leaseExpiresAt: null, readyAt: null, ...past }
  const pulled = [{ ...descriptor(0, 7, 25_000), lease }]
  return {
    callBack: {
      request: [descriptor(0, 7, 25_000), descriptor(0, 8, 24_100), descriptor(1, 0, 91_000)],
      answer: { taskId, accepted: 3, duplicates: 0 },
    },
    pull: { answer: { partitions: pulled } },
    settle: {
      request: [
        { leaseId, outcome: 'done', records: 25_000 },
        { leaseId: 'Zt1cZ0kPm4vL9sNfgb3xq7', outcome: 'failed', reason: 'compute table is locked' },
      ],
      answer: {
        settled: [leaseId],
        refused: [
          {
            leaseId: 'Zt1cZ0kPm4vL9sNfgb3xq7',
            code: 'lease_lost',
            detail: refusalDetail('lease_lost'),
          },
        ],
        partitions: [],
      },
    },
    renew: {
      request: [leaseId],
      answer: { renewed: [{ leaseId, expiresAt: at('12:10:00'), expiresInSeconds: 300 }], refused: [] },
    },
    instanceStatus: { answer: worker },
    releaseInstance: { answer: { instanceId: 'loader-7', released: 3, parked: 0 } },
    listInstances: { answer: { instances: [worker], next: null } },
    listTasks: { answer: { tasks: [summary], next: null } },
    listAudit: {
      answer: {
        entries: [
          {
            at: at('12:00:00'),
            kind: 'order',
            name: 'on call',
            address: '10.0.0.7',
            action: `POST /tasks/${taskId}/pause`,
            outcome: 'done',
            detail: null,
            times: 1,
          },
        ],
        next: null,
      },
    },
    viewTotals: {
      answer: {
        tasks: { open: 3, stalled: 0, paused: 1, withParked: 1 },
        partitions: countsOf({ done: 310, leased: 12, ready: 87, parked: 1 }),
        records: countsOf({ done: 7_750_000, leased: 300_000, ready: 2_175_000, parked: 25_000 }),
        complete: true,
      },
    },
    viewScale: {
      answer: {
        targetSeconds: 600,
        desiredWorkers: 12,
        estimatedWorkers: 12,
        reason: 'pace',
        limitedBy: null,
        workSeconds: 6930,
        backlog: {
          partitions: { left: 99, ready: 87, held: 0, leased: 12, delayed: 0, parked: 1 },
          records: {
            left: 2_475_000,
            ready: 2_175_000,
            held: 0,
            leased: 300_000,
            delayed: 0,
            parked: 25_000,
          },
        },
        workers: { busy: 12, elsewhere: 0, idle: 0, lost: 0, leasesPerWorker: 1 },
        pace: { partitionsPerSecond: 0.16, recordsPerSecond: 4000 },
        tasks: { open: 3, stalled: 0, paused: 1, withOtherTables: 0 },
        complete: true,
      },
    },
    viewTask: {
      answer: {
        ...summary,
        calledBackBy: ['orders compute'],
        levelBarrier: false,
        settings,
        waitingFor: null,
        settledByDelivery: 0,
        levels: [level],
        levelsOmitted: 0,
        computeTables: ['results.orders'],
        finishedAt: null,
        purgedAt: null,
        attemptsWasted: 6,
        attemptSeconds: { median: 12, p95: 40, attempts: 16 },
        workers: 4,
        stragglers: [],
        failures: [
          {
            outcome: 'failed',
            reason: 'compute table is locked',
            count: 6,
            firstAt: at('11:41:10'),
            lastAt: at('11:59:30'),
          },
        ],
        failuresOmitted: 0,
        reported: {
          declared: 650_000,
          reported: 649_980,
          mismatched: 1,
          mismatches: [{ partition_name: `${taskId}-0-3`, declared: 25_000, reported: 24_980 }],
        },
      },
    },
    listPartitions: {
      answer: { partitions: [{ ...descriptor(0, 7, 25_000), ...leaseState, ...row }], next: null },
    },
    viewThroughput: {
      answer: {
        taskId,
        step: 'minute',
        from: at('11:40:00'),
        to: at('11:44:30'),
        points: [
          { at: at('11:40:00'), partitions: 5, records: 125_000 },
          { at: at('11:41:00'), partitions: 6, records: 150_000 },
          { at: at('11:44:00'), partitions: 3, records: 75_000 },
        ],
      },
    },
    exportManifest: { answer: { ...descriptor(0, 7, 25_000), ...leaseState, ...past } },
    pause: control('paused', 1),
    resume: control('open', 1),
    cancel: control('cancelled', 16),
    skipParked: control('open', 1),
    retry: control('open', 1, { partitions: [`${taskId}-0-7`] }),
    seal: control('open', 1, { partitions: 42 }),
    owner: control('open', 1, { name: 'orders compute' }),
    levelBarrier: control('open', 1, { enabled: true }),
    settings: {
      request: { leaseSeconds: 600, maxLeases: 16 },
      answer: {
        taskId,
        settings: { ...settings, leaseSeconds: 600, maxLeases: 16, own: ['leaseSeconds', 'maxLeases'] },
      },
    },
    subscribe: {
      request: { url: subscription.url, types: subscription.types, taskPrefix: subscription.taskPrefix },
      answer: { ...subscription, secret },
    },
    listSubscriptions: {
      answer: {
        subscriptions: [
          { ...subscription, pending: 3, oldestPendingAt: at('12:01:00'), circuitOpenUntil: null },
        ],
      },
    },
    unsubscribe: { answer: { id: subscription.id, removed: true } },
    rotateSecret: { request: { overlapSeconds: 3600 }, answer: { ...subscription, secret } },
    enableSubscription: { answer: subscription },
    listDeliveries: { answer: { deliveries: [delivery], next: null } },
    redeliver: { answer: { ...delivery, state: 'pending', attempts: 0, nextAttemptAt: at('12:10:00') } },
    readEvents: { answer: { events: [cloudEvent], next: cloudEvent.sequence, missed: false } },
    followEvents: {
      answer: `id: cf7b5e94-2\nevent: task\ndata: ${JSON.stringify(summary)}\n\n`,
    },
    livez: { answer: { status: 'alive' } },
    readyz: { answer: { status: 'ready' } },
    metrics: {
      answer: [
        '# HELP baton_partitions partitions of these tasks that are ready, held, leased, delayed or parked',
        '# TYPE baton_partitions gauge',
        'baton_partitions{state="ready"} 11',
        'baton_partitions{state="leased"} 4',
        '',
      ].join('\n'),
    },
  }
}
