import { useEffect, useState } from 'preact/hooks'
import type { Route } from '../route.ts'
import { explained, noteRefusal } from '../service/connection.ts'
import { loadMore, loadOlder, olderCursor, type TaskQuery, tasksLoads } from '../service/tasks.ts'

const ASK_AFTER_MILLIS = 250

type OverviewRoute = Extract<Route, { page: 'overview' }>

interface Requested {
  readonly state: 'asking' | 'asked' | { readonly failed: string }
  /** The cursor of the next page of results. */
  readonly next: string | null
}

const ASKING: Requested = { state: 'asking', next: null }

/**
 * Loads the tasks that match a filter or a search from the service, because tasks that were not loaded yet
 * may match too.
 */
export function useAskedTasks(at: OverviewRoute) {
  const { state, search } = at
  const isFiltered = state !== null || search !== ''
  const loads = tasksLoads.value
  const [asked, setAsked] = useState<Requested>(ASKING)
  const [busy, setBusy] = useState(false)

  useEffect(() => {
    if (!isFiltered) return
    let isCurrent = true
    const tell = (outcome: Requested) => {
      if (isCurrent) setAsked(outcome)
    }
    tell(ASKING)
    const asking = setTimeout(() => {
      loadMore(queryOf(at), 'any').then(
        (next) => tell({ state: 'asked', next }),
        (error: unknown) => {
          noteRefusal(error)
          tell({ state: { failed: explained(error) }, next: null })
        },
      )
    }, ASK_AFTER_MILLIS)
    return () => {
      isCurrent = false
      clearTimeout(asking)
    }
  }, [state, search, loads])

  const next = isFiltered ? asked.next : olderCursor.value
  const askOn = async (): Promise<void> => {
    if (next === null || busy) return
    setBusy(true)
    try {
      if (!isFiltered) await loadOlder()
      else {
        const following = await loadMore({ ...queryOf(at), cursor: next }, 'new ones')
        setAsked((now) => (now.next === next ? { state: 'asked', next: following } : now))
      }
    } finally {
      setBusy(false)
    }
  }
  return { found: isFiltered ? asked.state : ('asked' as const), hasMore: next !== null, busy, askOn }
}

function queryOf({ state, search }: OverviewRoute): TaskQuery {
  return {
    ...(state === null ? {} : state === 'parked' ? { parked: true } : { state }),
    ...(search === '' ? {} : { search }),
  }
}
