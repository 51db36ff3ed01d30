import { setTimeout as sleep } from 'node:timers/promises'
import { Logger, makeWorkerUtils, run, type WorkerUtils } from 'graphile-worker'
import {
  type ConsumeInput,
  type ConsumeResult,
  fillInGroups,
  type PeerClient,
  Window,
} from '../peer-client.ts'

const silent = new Logger(() => () => {})

export async function connectGraphileWorker({ url }: { url: string }): Promise<PeerClient> {
  const producer: WorkerUtils = await makeWorkerUtils({ connectionString: url, logger: silent })
  await producer.migrate()
  return {
    fill: (partitions) =>
      fillInGroups(partitions, 2_000, (group) =>
        producer.addJobs(group.map((payload) => ({ identifier: 'partition', payload }))),
      ),
    consume: (input) => consume(url, input),
  }
}

async function consume(url: string, { way, consumers, seconds }: ConsumeInput): Promise<ConsumeResult> {
  const window = new Window(seconds)
  let started = false
  const runner = await run({
    preset: {
      worker: {
        connectionString: url,
        concurrentJobs: consumers,
        maxPoolSize: consumers + 2,
        logger: silent,
        // The values from its performance page.
        ...(way === 'local queue'
          ? { localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 }
          : {}),
      },
    },
    noHandleSignals: true,
    taskList: {
      partition() {
        if (!started) window.restart()
        started = true
      },
    },
  })
  // The library does not wait for the write of a completion, so at most the jobs in flight are counted early.
  runner.events.on('job:complete', () => {
    if (window.open) window.acknowledged(1)
  })
  await sleep(window.remainingMs)
  const result = window.result()
  await runner.stop()
  return result
}
