import type { PartitionRow } from '@baton/protocol'

/** Gives the compute table the name that this deployment has for it on the wire. */
export function tableFieldRenamer(tableField: string) {
  return <Row extends Pick<PartitionRow, 'taskId' | 'computeTableName'>>(row: Row) => {
    if (tableField === 'computeTableName') return row
    const { taskId, computeTableName, ...others } = row
    return { taskId, [tableField]: computeTableName, ...others }
  }
}
