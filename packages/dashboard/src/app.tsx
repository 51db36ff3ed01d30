import { useEffect } from 'preact/hooks'
import { route } from './here.ts'
import { InstancePage } from './instance/instance-page.tsx'
import { Overview } from './overview/overview.tsx'
import { Empty } from './parts/empty.tsx'
import { Masthead } from './parts/masthead.tsx'
import { Notices } from './parts/notices.tsx'
import type { Route } from './route.ts'
import { tokenWanted } from './service/connection.ts'
import { liveState } from './service/live.ts'
import { TaskPage } from './task/task-page.tsx'
import { TokenForm } from './token-form.tsx'

export function App() {
  const at = route.value
  useEffect(() => {
    document.title = titleOf(at)
  }, [at])
  return (
    <>
      <button type="button" class="skip" onClick={skipToContent}>
        Skip to content
      </button>
      <Masthead here="overview" live={liveState.value} />
      {tokenWanted.value === 'no' ? <View at={at} /> : <TokenForm why={tokenWanted.value} />}
      <Notices />
    </>
  )
}

function View({ at }: { at: Route }) {
  switch (at.page) {
    case 'overview':
      return <Overview />
    case 'task':
      return <TaskPage key={at.taskId} at={at} />
    case 'instance':
      return <InstancePage key={at.instanceId} instanceId={at.instanceId} />
    case 'unknown':
      return (
        <main class="page" id="content">
          <h1 class="task-title">Nothing is here</h1>
          <Empty title="The link does not lead to a task or an instance.">
            <p>
              <a href="#/">To the overview</a>
            </p>
          </Empty>
        </main>
      )
  }
}

/** No link: the part of the address behind the # says where the page is, and a jump must not change it. */
function skipToContent(): void {
  const content = document.getElementById('content')
  content?.setAttribute('tabindex', '-1')
  content?.focus()
}

function titleOf(at: Route): string {
  if (at.page === 'task') return `${at.taskId} · Baton`
  if (at.page === 'instance') return `${at.instanceId} · Baton`
  return 'Baton'
}
