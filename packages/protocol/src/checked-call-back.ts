/** A partition of a call-back that holds to the contract. */
export interface CalledBackPartition {
  level: number
  index: number
  recordCount: number
  computeTableName: string
  /** The name as it was sent, when it is not the canonical one of this level and index. */
  spelling: string | null
}

export interface CallBack {
  taskId: string
  recordTotal: number
  partitions: CalledBackPartition[]
}
