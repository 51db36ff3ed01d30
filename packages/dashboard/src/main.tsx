import './style/index.css'
import { effect } from '@preact/signals'
import { render } from 'preact'
import { App } from './app.tsx'
import { followInstances } from './instance/instance-panel.tsx'
import { readSession, tokenWanted } from './service/connection.ts'
import { startClock, startLive } from './service/live.ts'
import { followTasks } from './service/tasks.ts'
import { followTotals } from './service/totals.ts'

const root = document.getElementById('page')
if (root !== null) {
  followTasks()
  followTotals()
  followInstances()
  startLive()
  effect(() => {
    if (tokenWanted.value === 'no') void readSession()
  })
  startClock()
  root.replaceChildren()
  render(<App />, root)
}
