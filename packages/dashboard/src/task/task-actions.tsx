import { ProblemError } from '@baton/client'
import type { Problem, TaskView } from '@baton/protocol'
import { isUnfinishedState } from '@baton/protocol/core'
import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import {
  Confirmation,
  type ControlConfirmationProps,
  type ControlRequest,
  say,
  useControl,
} from '../parts/control.tsx'
import { CopyAs } from '../parts/copy.tsx'
import { counted } from '../parts/format.ts'
import { baseUrl, client, explained, mayControl, token } from '../service/connection.ts'

/** Seals a task, optionally with the expected number of partitions. */
function SealConfirmation({ view, busy, request, onClose }: ControlConfirmationProps) {
  const { taskId, partitions } = view
  const [expected, setExpected] = useState('')
  const [fault, setFault] = useState<string | null>(null)
  const seal = async () => {
    // An invalid number must not count as none: a seal without a number does not check for missing
    // partitions.
    if (expected !== '' && !/^\d{1,15}$/.test(expected)) {
      setFault('The number of partitions must be digits, or empty.')
      return
    }
    const sealing = expected === '' ? {} : { partitions: Number(expected) }
    const isSealed = await request(
      () => client.peek().seal(taskId, sealing),
      () => 'Sealed: new partitions are refused',
      setFault,
    )
    if (isSealed) onClose()
  }
  return (
    <Confirmation
      title="Seal this task?"
      action="Seal"
      busy={busy}
      fault={fault}
      onConfirm={() => void seal()}
      onClose={onClose}
    >
      <p>
        {counted(partitions.total, 'partition is', 'partitions are')} known. A sealed task refuses new
        partitions and is not reopened when it is done. This cannot be undone.
      </p>
      <label class="field">
        <span>Total number of partitions (optional)</span>
        <input
          type="text"
          inputMode="numeric"
          placeholder={String(partitions.total)}
          value={expected}
          aria-invalid={fault !== null}
          onInput={(event) => {
            setExpected(event.currentTarget.value.trim())
            setFault(null)
          }}
        />
        <small>The task then shows how many are missing. New partitions are refused in any case.</small>
      </label>
    </Confirmation>
  )
}

/** The actions of an operator on a task. Actions that cannot be undone need a confirmation. */
export function TaskActions({ view, refresh }: { view: TaskView; refresh: () => void }) {
  const { taskId, state, partitions, sealed } = view
  const { busy, request } = useControl(refresh)
  const [asking, setAsking] = useState<'cancel' | 'seal' | null>(null)
  const isUnfinished = isUnfinishedState(state)
  const left = partitions.total - partitions.done
  const [fault, setFault] = useState<string | null>(null)
  const close = () => {
    setAsking(null)
    setFault(null)
  }

  const cancel = async () => {
    const isCancelled = await request(
      () => client.peek().cancel(taskId),
      ({ changed }) => `Cancelled ${counted(changed, 'partition')}`,
      setFault,
    )
    if (isCancelled) close()
  }

  const pause = () =>
    void request(
      () => client.peek().pause(taskId),
      () => 'Paused: no partitions are handed out; live leases stay valid',
    )

  const resume = () =>
    void request(
      () => client.peek().resume(taskId),
      () => 'Resumed: partitions are handed out again',
    )

  return (
    <div class="buttons">
      {mayControl.value ? null : (
        <p class="muted">
          This token can only view. Control requests require a token with the role operator.
        </p>
      )}
      {mayControl.value && isUnfinished ? (
        // One element for both actions, so that it keeps the focus.
        <button
          type="button"
          class={state === 'paused' ? 'button primary' : 'button'}
          aria-disabled={busy}
          onClick={state === 'paused' ? resume : pause}
        >
          {state === 'paused' ? 'Resume' : 'Pause'}
        </button>
      ) : null}
      {mayControl.value && state !== 'cancelled' && !sealed ? (
        <button type="button" class="button" onClick={() => setAsking('seal')}>
          Seal…
        </button>
      ) : null}
      {mayControl.value && isUnfinished ? (
        <button type="button" class="button danger-quiet" onClick={() => setAsking('cancel')}>
          Cancel task…
        </button>
      ) : null}
      <MoreActions view={view} mayControl={mayControl.value} busy={busy} request={request} />
      {asking === 'cancel' ? (
        <Confirmation
          title="Cancel this task?"
          action={`Cancel ${counted(left, 'partition')}`}
          destroys
          busy={busy}
          fault={fault}
          onConfirm={() => void cancel()}
          onClose={close}
        >
          <p>
            Every partition that is not done is cancelled, including leased ones. Done partitions stay done.
            This cannot be undone: to compute the task again, its producer must use a new task id.
          </p>
        </Confirmation>
      ) : null}
      {asking === 'seal' ? (
        <SealConfirmation view={view} busy={busy} request={request} onClose={close} />
      ) : null}
    </div>
  )
}

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
function RerunConfirmation({ view, busy, request, onClose }: ControlConfirmationProps) {
  const { taskId, levels, partitions } = view
  const [level, setLevel] = useState('')
  const [fault, setFault] = useState<string | null>(null)
  const chosen = level === '' ? partitions : levels.find((one) => String(one.level) === level)?.partitions
  const done = chosen?.done ?? 0
  const rerun = async () => {
    const isDone = await request(
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
      <p>Done partitions are handed out again. Parked partitions are also retried. This cannot be undone.</p>
      <label class="field">
        <span>Partitions</span>
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
  readonly mayControl: boolean
  readonly busy: boolean
  readonly request: ControlRequest
}

/** Rarely used actions of a task. */
function MoreActions({ view, mayControl, busy, request }: MoreProps) {
  const { taskId, state, levelBarrier } = view
  const [isAsking, setAsking] = useState(false)
  const setBarrier = () =>
    void request(
      () => client.peek().levelBarrier(taskId, !levelBarrier),
      () =>
        levelBarrier
          ? 'Levels no longer wait for lower levels'
          : 'Each level now waits until all lower levels are finished',
    )
  const offersBarrier = mayControl && state !== 'cancelled'
  const offersRerun = mayControl && canRerun(view)
  return (
    <>
      <More>
        {offersBarrier ? (
          <button type="button" aria-disabled={busy} onClick={setBarrier}>
            {levelBarrier ? 'Disable the level barrier' : 'Enable the level barrier'}
          </button>
        ) : null}
        {offersRerun ? (
          <button type="button" onClick={() => setAsking(true)}>
            Run done partitions again…
          </button>
        ) : null}
        {view.purgedAt === null ? <ManifestLink taskId={taskId} /> : null}
        <CopyAs path={`tasks/${encodeURIComponent(taskId)}`} />
      </More>
      {isAsking ? (
        <RerunConfirmation view={view} busy={busy} request={request} onClose={() => setAsking(false)} />
      ) : null}
    </>
  )
}

/** A sealed task that is done is final, and purged partitions cannot run again. */
function canRerun({ state, sealed, partitions, purgedAt }: TaskView): boolean {
  if (state === 'cancelled' || purgedAt !== null || partitions.done === 0) return false
  return !(sealed && state === 'done')
}
