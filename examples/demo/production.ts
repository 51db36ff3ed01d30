import { BatonClient, Producer } from '@baton/client'
import { type DemoTask, descriptorsOf, firstTasks, laterTask, PAUSED } from './tasks.ts'

const LATER_EVERY_MILLIS = 25_000
/** More work is called back only while there is not too much of it: a demo may run all day. */
const MOST_RECORDS_WAITING = 40_000_000

/** Calls the first tasks back, and a further one now and then. Returns how to stop. */
export async function startProduction(url: string): Promise<() => void> {
  const compute = new BatonClient({ url, instanceId: 'nightly-compute' })
  const operator = new BatonClient(url)
  const producer = new Producer(compute)
  const callBack = (task: DemoTask) => producer.callBack(descriptorsOf(task))
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

/** When everything is done, something large again. */
function grown(count: number): DemoTask {
  const last = firstTasks.at(-1) as DemoTask
  return { ...last, taskId: `${last.taskId}-${count + 1}` }
}
