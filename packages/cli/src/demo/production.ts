import { BatonClient, Producer } from '@baton/client'
import { type DemoTask, descriptorsOf, firstTasks, LIMITED, laterTask, PAUSED } from './tasks.ts'

const LATER_EVERY_MILLIS = 25_000
/** Calls back more work only while the backlog is below this: a demo may run all day. */
const MOST_RECORDS_WAITING = 40_000_000

/** Calls back the first tasks, then another one now and then. Returns a function that stops it. */
export async function startProduction(url: string): Promise<() => void> {
  const compute = new BatonClient({ url, instanceId: 'nightly-compute' })
  const operator = new BatonClient(url)
  const producer = new Producer(compute)
  const callBack = (task: DemoTask) => producer.callBack(descriptorsOf(task))
  await operator.changeTableSettings(LIMITED.table, { maxLeases: LIMITED.maxLeases })
  for (const task of firstTasks) {
    await callBack(task)
    if (task.taskId === PAUSED) await operator.pause(PAUSED)
  }
  let count = 0
  const later = async () => {
    const { tasks } = await operator.tasks({ state: 'open', limit: 100 })
    const waiting = tasks.reduce((sum, { records }) => sum + records.ready, 0)
    if (waiting > MOST_RECORDS_WAITING) return
    await callBack(waiting === 0 ? grown(count) : laterTask(count))
    count += 1
  }
  const producing = setInterval(() => void later().catch(() => {}), LATER_EVERY_MILLIS)
  return () => clearInterval(producing)
}

/** When everything is done, calls back a large task again. */
function grown(count: number): DemoTask {
  const last = firstTasks.at(-1) as DemoTask
  return { ...last, taskId: `${last.taskId}-${count + 1}` }
}
