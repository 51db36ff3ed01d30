/** How much callers may ask for at once. Each has a setting. */
export interface AdmissionLimits {
  readonly connections: number
  readonly connectionsPerAddress: number
  readonly requestsPerConnection: number
  readonly waitingPulls: number
  readonly waitingPullsPerCaller: number
  readonly receivedBytes: number
  readonly unsentBytes: number
  readonly callBackPartitions: number
  readonly callBackLevels: number
  readonly requestMillis: number
  readonly answerMillis: number
  readonly overloadMillis: number
  /** 0: as many as they like. */
  readonly requestsPerSecond: number
}
