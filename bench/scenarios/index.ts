import type { Scenario } from '../harness/bench.ts'
import { backlog } from './backlog.ts'
import { batches } from './batches.ts'
import { callBack } from './call-back.ts'
import { callBackStall, postgresCallBackStall } from './call-back-stall.ts'
import { choices } from './choices.ts'
import { coldStart } from './cold-start.ts'
import { control } from './control.ts'
import { failOver } from './fail-over.ts'
import { lanes } from './lanes.ts'
import { limits } from './limits.ts'
import { littleWork } from './little-work.ts'
import { longPolls } from './long-polls.ts'
import { oneByOne } from './one-by-one.ts'
import { pageUnderLoad } from './page.ts'
import { postgresBatches } from './postgres-batches.ts'
import { postgresBesideProducer } from './postgres-beside-producer.ts'
import { postgresNodes } from './postgres-nodes.ts'
import { postgresOneByOne } from './postgres-one-by-one.ts'
import { pythonWorker } from './python-worker.ts'
import { settleAndPull } from './settle-and-pull.ts'
import { tracing } from './tracing.ts'
import { viewsOfATask } from './views.ts'
import { watchers } from './watchers.ts'
import { webhooks } from './webhooks.ts'

/** In the order in which they run and appear in the table. */
export const scenarios: readonly Scenario[] = [
  oneByOne,
  settleAndPull,
  batches,
  postgresOneByOne,
  postgresBatches,
  postgresBesideProducer,
  postgresNodes,
  failOver,
  callBack,
  callBackStall,
  postgresCallBackStall,
  backlog,
  lanes,
  choices,
  limits,
  control,
  longPolls,
  littleWork,
  coldStart,
  tracing,
  pythonWorker,
  viewsOfATask,
  pageUnderLoad,
  watchers,
  webhooks,
]
