import { BatonClient, type PartitionDescriptor } from '@baton/client'
import { startService as start } from '../../../packages/client/test/support/service.ts'
import { RestartableService } from '../../support/restartable-service.ts'

export interface RunningService {
  readonly url: string
  readonly client: BatonClient
}

/** Runs for the duration of a test. */
export async function startService(...flags: string[]): Promise<RunningService> {
  const { url } = await start(...flags)
  return { url, client: clientOf(url) }
}

export interface ServiceToTakeAway extends RunningService {
  /** Kills the service, as a crash would. */
  readonly stop: () => Promise<void>
  /** Starts it again with the same address and data, optionally with other flags. */
  readonly restart: (...flags: string[]) => Promise<void>
}

export async function startServiceToTakeAway(...flags: string[]): Promise<ServiceToTakeAway> {
  const service = await RestartableService.start(...flags)
  const { url } = service
  return {
    url,
    client: clientOf(url),
    stop: () => service.kill(),
    restart: async (...others) => {
      await service.kill()
      await service.startAgain(...others)
    },
  }
}

const clientOf = (url: string) => new BatonClient({ url, instanceId: 'browser-test' })

/** Partitions of a task: the number on each level, lowest first. */
export function partitionsOf(
  taskId: string,
  levels: readonly number[],
  records = 100,
): PartitionDescriptor[] {
  return levels.flatMap((count, level) =>
    Array.from({ length: count }, (_, index) => ({
      taskId,
      computeTableName: 'results.orders',
      partition_name: `${taskId}-${level}-${index}`,
      record_count: records,
      priorityLevel: level,
    })),
  )
}
