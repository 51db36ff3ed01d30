import type { InstanceRole } from '@baton/protocol'
import type { HandOffBatch } from '../../../handoff/store.ts'
import type { Names } from './names.ts'

/** The names that a batch brings have their numbers when it resolves. Nothing is asked where all are known. */
export async function writeNamesOf({ callBacks, pulls }: HandOffBatch, names: Names): Promise<void> {
  const isKnown = pulls.every(({ instance }) => instance === null || names.knowsInstance(instance))
  if (callBacks.length === 0 && isKnown) return
  const instances = new Map<string, InstanceRole>()
  for (const { producer } of callBacks) if (producer !== null) instances.set(producer, 'producer')
  for (const { instance } of pulls) if (instance !== null) instances.set(instance, 'worker')
  const tables = callBacks.flatMap(({ callBack }) =>
    callBack.partitions.map(({ computeTableName }) => computeTableName),
  )
  await Promise.all([names.writeInstances(instances), names.writeTables(tables)])
}
