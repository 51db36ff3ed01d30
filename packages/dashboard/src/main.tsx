import './style/index.css'
import { render } from 'preact'
import { App } from './app.tsx'
import { followInstances } from './instance/instance-panel.tsx'
import { startClock, startLive } from './service/live.ts'
import { followTasks } from './service/tasks.ts'
import { followTotals } from './service/totals.ts'

const root = document.getElementById('page')
if (root !== null) {
  followTasks()
  followTotals()
  followInstances()
  startLive()
  startClock()
  root.replaceChildren()
  render(<App />, root)
}
