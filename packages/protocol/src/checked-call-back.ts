/** A partition of a call-back that holds to the contract. */
export interface CalledBackPartition {
  level: number
  index: number
  recordCount: number
  computeTableName: string
  /** The name as it was sent, when it is not the canonical one of this level and index. */
  spelling: string | null
  /** The fields beyond the contract as the text of one JSON object; absent where there are none or they are not kept. */
  extraFields?: string | null
}

export interface CallBack {
  taskId: string
  recordTotal: number
  partitions: CalledBackPartition[]
}
