import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import { route } from './current-route.ts'
import { InstancePage } from './instance/instance-page.tsx'
import { InstancesPage } from './instance/instances-page.tsx'
import { Overview } from './overview/overview.tsx'
import { Notices } from './parts/control.tsx'
import { timeOfDay } from './parts/format.ts'
import { Masthead, type Section, SkipLink, TokenForm } from './parts/frame.tsx'
import { Keys } from './parts/keys.tsx'
import { Empty, focusContent } from './parts/panel.tsx'
import { placeOf, type Route } from './route.ts'
import { clientWith, tokenWanted } from './service/connection.ts'
import { awaySince, isAway, liveState } from './service/live.ts'
import { TablesPage } from './tables/tables-page.tsx'
import { TaskPage } from './task/task-page.tsx'
import { SubscriptionPage } from './webhooks/subscription-page.tsx'
import { WebhooksPage } from './webhooks/webhooks-page.tsx'

/** The scroll position of each page when the user left it. */
const scrolled = new Map<string, number>()
let isLinkFollowed = false

addEventListener('click', ({ target }) => {
  isLinkFollowed = target instanceof Element && target.closest('a') !== null
})

/**
 * Following a link scrolls to the top of the new page and moves the focus there, because the focused element
 * is gone. Going back restores the scroll position. The browser restores it too, but not after the focus has
 * moved.
 */
function useArrival(place: string): void {
  const before = useRef(place)
  const position = useRef(0)
  useEffect(() => {
    const note = () => {
      position.current = scrollY
    }
    addEventListener('scroll', note, { passive: true })
    return () => removeEventListener('scroll', note)
  }, [])
  // In a layout effect: if the new page is shorter, the browser changes the scroll position before an
  // ordinary effect would run.
  useLayoutEffect(() => {
    if (before.current === place) return
    scrolled.set(before.current, position.current)
    before.current = place
    if (isLinkFollowed) {
      scrollTo(0, 0)
      focusContent()
    } else scrollTo(0, scrolled.get(place) ?? 0)
    isLinkFollowed = false
  }, [place])
}

/** Warns that the content below it is out of date. */
function AwayBanner() {
  const since = awaySince.value
  return (
    <div class="away" role="alert">
      {since === null ? null : (
        <p class="away-banner">
          <b>The service has not been reachable since {timeOfDay(since)}.</b> The page shows the state of that
          time.
        </p>
      )}
    </div>
  )
}

const PURPOSE_OF_TOKEN =
  'A token with the role viewer can read everything. A token with the role operator can also pause, retry and cancel.'

const look = (token: string) => clientWith(token).tasks({ limit: 1 })

export function App() {
  const at = route.value
  useArrival(placeOf(at))
  useEffect(() => {
    document.title = titleOf(at)
  }, [at])
  return (
    <>
      <SkipLink />
      <Masthead here={sectionOf(at)} live={liveState.value} />
      <AwayBanner />
      {tokenWanted.value === 'no' ? (
        <div class={isAway.value ? 'stale' : undefined}>
          <View at={at} />
        </div>
      ) : (
        <TokenForm why={tokenWanted.value} purpose={PURPOSE_OF_TOKEN} attempt={look} />
      )}
      <Keys />
      <Notices />
    </>
  )
}

function View({ at }: { at: Route }) {
  switch (at.page) {
    case 'overview':
      return <Overview span={at.span} />
    case 'task':
      return <TaskPage key={at.taskId} at={at} />
    case 'instances':
      return <InstancesPage at={at} />
    case 'instance':
      return <InstancePage key={at.instanceId} instanceId={at.instanceId} />
    case 'webhooks':
      return <WebhooksPage />
    case 'subscription':
      return <SubscriptionPage key={at.subscriptionId} subscriptionId={at.subscriptionId} />
    case 'tables':
      return <TablesPage at={at} />
    case 'unknown':
      return (
        <main class="page" id="content">
          <h1 class="task-title">Page not found</h1>
          <Empty title="This link does not lead to a task, an instance or a webhook.">
            <p>
              <a href="#/">To the overview</a>
            </p>
          </Empty>
        </main>
      )
  }
}

function titleOf(at: Route): string {
  switch (at.page) {
    case 'task':
      return `${at.taskId} · Baton`
    case 'instance':
      return `${at.instanceId} · Baton`
    case 'subscription':
      return `${at.subscriptionId} · Baton`
    case 'instances':
      return 'Instances · Baton'
    case 'tables':
      return 'Tables · Baton'
    case 'webhooks':
      return 'Webhooks · Baton'
    default:
      return 'Baton'
  }
}

function sectionOf({ page }: Route): Section {
  if (page === 'webhooks' || page === 'subscription') return 'webhooks'
  if (page === 'instances' || page === 'instance') return 'instances'
  return page === 'tables' ? 'tables' : 'overview'
}
