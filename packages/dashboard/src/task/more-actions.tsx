import { ProblemError } from '@baton/client'
import type { Problem, TaskView } from '@baton/protocol'
import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { counted } from '../parts/format.ts'
import { Confirmation, type Order, type OrderConfirmationProps, say } from '../parts/order.tsx'
import { baseUrl, client, explained, token } from '../service/connection.ts'

/** Loads the whole manifest. Rejects if the connection breaks. */
async function readManifest(url: URL, bearer: string): Promise<Blob> {
  const response = await fetch(url, { headers: { authorization: `Bearer ${bearer}` }, cache: 'no-store' })
  if (response.ok) return response.blob()
  throw new ProblemError((await response.json()) as Problem)
}

/**
 * A plain link lets the browser stream the manifest to disk. With a token the page has to fetch it, because a
 * link cannot carry one.
 */
function ManifestLink({ taskId }: { taskId: string }) {
  const [busy, setBusy] = useState(false)
  const url = new URL(`tasks/${encodeURIComponent(taskId)}/manifest`, baseUrl)
  const name = `${taskId.replaceAll(/[^\w.-]+/g, '_')}.ndjson`
  const bearer = token.value
  if (bearer === null) {
    return (
      <a href={url.href} download={name}>
        Download the manifest
      </a>
    )
  }
  const fetchIt = async () => {
    if (busy) return
    setBusy(true)
    try {
      hand(await readManifest(url, bearer), name)
    } catch (error) {
      say('failed', `The manifest could not be read. ${explained(error)}`)
    } finally {
      setBusy(false)
    }
  }
  return (
    <button type="button" aria-disabled={busy} onClick={() => void fetchIt()}>
      Download the manifest
    </button>
  )
}

function hand(file: Blob, name: string): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(file)
  link.download = name
  link.click()
  URL.revokeObjectURL(link.href)
}

/** Hands done partitions out again: all of them, or those of a level. */
function RerunConfirmation({ view, busy, order, onClose }: OrderConfirmationProps) {
  const { taskId, levels, partitions } = view
  const [level, setLevel] = useState('')
  const [fault, setFault] = useState<string | null>(null)
  const chosen = level === '' ? partitions : levels.find((one) => String(one.level) === level)?.partitions
  const done = chosen?.done ?? 0
  const rerun = async () => {
    const isDone = await order(
      () => client.peek().retry(taskId, { done: true, ...(level === '' ? {} : { level: Number(level) }) }),
      ({ changed }) => `${counted(changed, 'partition runs', 'partitions run')} again`,
      setFault,
    )
    if (isDone) onClose()
  }
  return (
    <Confirmation
      title="Run done partitions again?"
      action={`Run ${counted(done, 'partition')} again`}
      destroys
      busy={busy}
      fault={fault}
      onConfirm={() => void rerun()}
      onClose={onClose}
    >
      <p>
        Workers are given what is done once more, as if it never had been; parked partitions get fresh
        attempts along with it. This cannot be undone.
      </p>
      <label class="field">
        <span>Which of them</span>
        <select value={level} onChange={(event) => setLevel(event.currentTarget.value)}>
          <option value="">Every level</option>
          {levels
            .filter((one) => one.partitions.done > 0)
            .map((one) => (
              <option key={one.level} value={String(one.level)}>
                Level {one.level}
              </option>
            ))}
        </select>
      </label>
    </Confirmation>
  )
}

/** A menu of rarely used actions. It closes with Escape, a click elsewhere, or a selection. */
function More({ children }: { children: ComponentChildren }) {
  const group = useRef<HTMLDetailsElement>(null)
  useEffect(() => {
    const close = () => {
      if (group.current !== null) group.current.open = false
    }
    const onClick = ({ target }: Event) => {
      const isSummary = target instanceof Element && target.closest('summary') !== null
      const isWithin = target instanceof Node && group.current?.contains(target)
      if (!(isWithin && isSummary)) close()
    }
    const onKey = ({ key }: KeyboardEvent) => {
      if (key !== 'Escape' || !group.current?.open) return
      close()
      group.current.querySelector('summary')?.focus()
    }
    addEventListener('click', onClick)
    addEventListener('keydown', onKey)
    return () => {
      removeEventListener('click', onClick)
      removeEventListener('keydown', onKey)
    }
  }, [])
  return (
    <details class="more" ref={group}>
      <summary class="button">More</summary>
      <div class="more-choices">{children}</div>
    </details>
  )
}

interface MoreProps {
  readonly view: TaskView
  readonly mayOrder: boolean
  readonly busy: boolean
  readonly order: Order
}

/** Rarely used actions of a task. */
export function MoreActions({ view, mayOrder, busy, order }: MoreProps) {
  const { taskId, state, levelBarrier } = view
  const [isAsking, setAsking] = useState(false)
  const setBarrier = () =>
    void order(
      () => client.peek().levelBarrier(taskId, !levelBarrier),
      () =>
        levelBarrier
          ? 'No level waits for another any more'
          : 'From now on a level waits until all lower ones are finished',
    )
  const offersBarrier = mayOrder && state !== 'cancelled'
  const offersRerun = mayOrder && canRerun(view)
  if (!offersBarrier && !offersRerun && view.purgedAt !== null) return null
  return (
    <>
      <More>
        {offersBarrier ? (
          <button type="button" aria-disabled={busy} onClick={setBarrier}>
            {levelBarrier ? 'End the level barrier' : 'Let levels wait for lower ones'}
          </button>
        ) : null}
        {offersRerun ? (
          <button type="button" onClick={() => setAsking(true)}>
            Run done partitions again…
          </button>
        ) : null}
        {view.purgedAt === null ? <ManifestLink taskId={taskId} /> : null}
      </More>
      {isAsking ? (
        <RerunConfirmation view={view} busy={busy} order={order} onClose={() => setAsking(false)} />
      ) : null}
    </>
  )
}

/** A sealed task that is done is final, and purged partitions cannot run again. */
function canRerun({ state, sealed, partitions, purgedAt }: TaskView): boolean {
  if (state === 'cancelled' || purgedAt !== null || partitions.done === 0) return false
  return !(sealed && state === 'done')
}
