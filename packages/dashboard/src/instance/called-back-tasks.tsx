import type { ProducedTask } from '@baton/protocol'
import { TaskBadge } from '../parts/badge.tsx'
import { Ago } from '../parts/moment.tsx'
import { exact, percent } from '../parts/numbers.ts'
import { Scrolling } from '../parts/scrolling.tsx'
import { taskHref } from '../route.ts'

/** The tasks that a producer called back, and their progress. */
export function CalledBackTasks({ tasks }: { tasks: readonly ProducedTask[] }) {
  return (
    <section class="panel" aria-labelledby="called-back-title">
      <header class="panel-head">
        <h2 id="called-back-title">Tasks it called back</h2>
      </header>
      {tasks.length === 0 ? <p class="quiet">None so far.</p> : null}
      {tasks.length === 0 ? null : (
        <Scrolling label="Rows of tasks">
          <table class="held">
            <thead>
              <tr>
                <th scope="col">Task</th>
                <th scope="col">State</th>
                <th scope="col" class="number">
                  Done
                </th>
                <th scope="col" class="number wide-only">
                  Records
                </th>
                <th scope="col" class="number wide-only">
                  Partitions
                </th>
                <th scope="col" class="wide-only">
                  Last call-back
                </th>
              </tr>
            </thead>
            <tbody>
              {tasks.map(({ taskId, state, records, partitions, lastCallBackAt }) => (
                <tr key={taskId}>
                  <th scope="row" title={taskId}>
                    <a class="cut-start" href={taskHref(taskId)}>
                      <bdi>{taskId}</bdi>
                    </a>
                  </th>
                  <td>
                    <TaskBadge state={state} />
                  </td>
                  <td class="number">
                    {records.total > 0
                      ? percent(records.done, records.total)
                      : percent(partitions.done, partitions.total)}
                  </td>
                  <td class="number wide-only">{exact(records.total)}</td>
                  <td class="number wide-only">{exact(partitions.total)}</td>
                  <td class="wide-only">
                    <Ago at={lastCallBackAt} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scrolling>
      )}
    </section>
  )
}
