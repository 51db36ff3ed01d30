import { tasks, tasksLoad } from '../service/tasks.ts'
import { AuditPanel } from './audit-panel.tsx'
import { Figures } from './figures.tsx'
import { FirstCallBack } from './first-call-back.tsx'
import { InstancePanel } from './instance-panel.tsx'
import { LevelBacklog } from './level-backlog.tsx'
import { TaskPanel } from './task-panel.tsx'
import { ThroughputPanel } from './throughput-panel.tsx'

/** Shows whether work progresses, whether anything is stuck, and when it will be done. */
export function Overview() {
  const isEmpty = tasksLoad.value === 'loaded' && tasks.value.size === 0
  return (
    <main class="page" id="content">
      <h1 class="visually-hidden">Overview</h1>
      {isEmpty ? null : <Figures />}
      <div class="columns">
        <div class="column">
          {isEmpty ? <FirstCallBack /> : <ThroughputPanel />}
          {isEmpty ? null : <TaskPanel />}
        </div>
        <div class="column">
          {isEmpty ? null : <LevelBacklog />}
          <InstancePanel />
          <AuditPanel />
        </div>
      </div>
    </main>
  )
}
