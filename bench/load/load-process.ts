import { answerCalls } from '../harness/helper-process.ts'
import { callBacks } from './workloads/call-backs.ts'
import { callBackTasks, deepen, fill, fillLanes, takeLeases } from './workloads/fill.ts'
import { largeCallBackDuringPulls } from './workloads/large-call-back-during-pulls.ts'
import { littleWork } from './workloads/little-work.ts'
import { oneWorker } from './workloads/one-worker.ts'
import { pullThenSettle } from './workloads/pull-then-settle.ts'
import { settleAndPull } from './workloads/settle-and-pull.ts'
import { steadyBacklog } from './workloads/steady-backlog.ts'
import { closeWaitingPulls, openWaitingPulls, wakeWaitingPulls } from './workloads/waiting-pulls.ts'

/** All load comes from this one process, for every server. */
const calls = {
  fill,
  fillLanes,
  takeLeases,
  deepen,
  callBackTasks,
  pullThenSettle,
  settleAndPull,
  steadyBacklog,
  oneWorker,
  callBacks,
  largeCallBackDuringPulls,
  openWaitingPulls,
  wakeWaitingPulls,
  closeWaitingPulls,
  littleWork,
}

export type LoadCalls = typeof calls

answerCalls(calls)
