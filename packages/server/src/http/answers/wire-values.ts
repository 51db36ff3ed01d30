import { type PartitionRow, partitionName } from '@baton/protocol'

// Values in the wire format.

let formatted = { millis: Number.NaN, text: '' }

/** A time in the wire format. The last one is cached: leases granted together expire together. */
export function timestampOf(millis: number): string {
  if (formatted.millis !== millis) formatted = { millis, text: new Date(millis).toISOString() }
  return formatted.text
}

export function timestampOrNull(millis: number | null): string | null {
  return millis === null ? null : timestampOf(millis)
}

/** A duration in seconds, as in the wire format. Never negative. */
export const secondsOf = (millis: number): number => Math.max(millis, 0) / 1000

/** The name of a partition: as the producer spelled it, if that differs from the canonical spelling. */
export function nameOf(
  taskId: string,
  { level, index, spelling }: { level: number; index: number; spelling: string | null },
): string {
  return spelling ?? partitionName(taskId, level, index)
}

/** Renames `computeTableName` to the field name that is configured for the wire format, as in its schemas. */
export function tableFieldRenamer(tableField: string) {
  return <Row extends Pick<PartitionRow, 'taskId' | 'computeTableName'>>(row: Row): Row => {
    if (tableField === 'computeTableName') return row
    const { taskId, computeTableName, ...others } = row
    return { taskId, [tableField]: computeTableName, ...others } as unknown as Row
  }
}
