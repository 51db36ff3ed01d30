import type { TaskSettings, TaskSettingsRequest, TaskView } from '@baton/protocol'
import { readPauseAfterFailures, settingText } from '@baton/protocol/core'
import { useState } from 'preact/hooks'
import { Confirmation, type ControlConfirmationProps, useControl } from '../parts/control.tsx'
import { exact, percent } from '../parts/format.ts'
import { Ago } from '../parts/moment.tsx'
import { client, mayControl } from '../service/connection.ts'

/** The level barrier has its own button. */
type EditedSetting = Exclude<keyof TaskSettingsRequest, 'levelBarrier'>

const settingWords: Readonly<
  Record<EditedSetting, { name: string; of: (settings: TaskSettings) => string }>
> = {
  leaseSeconds: { name: 'Lease in seconds', of: ({ leaseSeconds }) => `lease ${exact(leaseSeconds)} s` },
  maxAttempts: { name: 'Attempts', of: ({ maxAttempts }) => `${exact(maxAttempts)} attempts` },
  backoffSeconds: {
    name: 'First back-off in seconds',
    of: ({ backoffSeconds }) => `back-off ${exact(backoffSeconds)} s`,
  },
  backoffMaxSeconds: {
    name: 'Longest back-off in seconds',
    of: ({ backoffMaxSeconds }) => `longest back-off ${exact(backoffMaxSeconds)} s`,
  },
  maxLeases: {
    name: 'Most leases at a time',
    of: ({ maxLeases }) => (maxLeases === null ? 'no limit of leases' : `at most ${exact(maxLeases)} leases`),
  },
  weight: { name: 'Weight', of: ({ weight }) => `weight ${exact(weight)}` },
  pauseAfterFailures: {
    name: 'Pause after failures, such as 0.5/20',
    of: ({ pauseAfterFailures: rule }) =>
      rule === null
        ? 'never pauses itself'
        : `pauses if ${percent(rule.share, 1)} of ${exact(rule.of)} attempts fail`,
  },
}
const editedSettings = Object.keys(settingWords) as EditedSetting[]

/** What was written in a field. Undefined if it cannot be read. */
function readSetting(name: EditedSetting, text: string) {
  if (text === '') return null
  if (name === 'pauseAfterFailures') return readPauseAfterFailures(text)
  return /^\d+(\.\d+)?$/.test(text) ? Number(text) : undefined
}

/** The settings that apply to a task, in one line. Its own ones are emphasised. */
export function SettingsLine({ view, refresh }: { view: TaskView; refresh: () => void }) {
  const { settings, control, state } = view
  const { busy, request } = useControl(refresh)
  const [isEditing, setEditing] = useState(false)
  const shown = editedSettings.map((name) => {
    const words = settingWords[name].of(settings)
    return settings.own.includes(name) ? <b key={name}>{words}</b> : <span key={name}>{words}</span>
  })
  return (
    <div class="settings-line">
      <p>
        {shown}
        <span>{settings.levelBarrier ? 'level barrier' : 'no level barrier'}</span>
        {control.changed === null ? null : (
          <span>
            changed <Ago at={control.changed.at} />
            {control.changed.name === null ? '' : ` by ${control.changed.name}`}
          </span>
        )}
      </p>
      {mayControl.value && state !== 'cancelled' ? (
        <button type="button" class="quiet-button" onClick={() => setEditing(true)}>
          Edit settings
        </button>
      ) : null}
      {isEditing ? (
        <SettingsDialog view={view} busy={busy} request={request} onClose={() => setEditing(false)} />
      ) : null}
    </div>
  )
}

function SettingsDialog({ view: { taskId, settings }, busy, request, onClose }: ControlConfirmationProps) {
  const textOf = (name: EditedSetting) => {
    const value = settings[name]
    return settings.own.includes(name) && value !== null ? settingText(value) : ''
  }
  const [texts, setTexts] = useState(
    () =>
      Object.fromEntries(editedSettings.map((name) => [name, textOf(name)])) as Record<EditedSetting, string>,
  )
  const [fault, setFault] = useState<string | null>(null)
  const save = async () => {
    const changed = editedSettings.filter((name) => texts[name] !== textOf(name))
    const wrong = changed.find((name) => readSetting(name, texts[name]) === undefined)
    if (wrong !== undefined) {
      const form = wrong === 'pauseAfterFailures' ? 'a share and a number of attempts' : 'a number'
      setFault(`${settingWords[wrong].name} must be ${form}, or empty for the value of the service.`)
      return
    }
    const changes: TaskSettingsRequest = Object.fromEntries(
      changed.map((name) => [name, readSetting(name, texts[name])]),
    )
    const isDone = await request(
      () => client.peek().changeSettings(taskId, changes),
      () => 'Settings saved',
      setFault,
    )
    if (isDone) onClose()
  }
  return (
    <Confirmation
      title="Settings of this task"
      action="Save"
      dismiss="Cancel"
      busy={busy}
      fault={fault}
      onConfirm={() => void save()}
      onClose={onClose}
    >
      <div class="setting-fields">
        {editedSettings.map((name) => (
          <label class="field" key={name}>
            <span>{settingWords[name].name}</span>
            <input
              type="text"
              inputMode={name === 'pauseAfterFailures' ? 'text' : 'decimal'}
              placeholder={settings[name] === null ? 'none' : settingText(settings[name])}
              value={texts[name]}
              onInput={(event) => {
                const text = event.currentTarget.value.trim()
                setTexts((before) => ({ ...before, [name]: text }))
                setFault(null)
              }}
            />
          </label>
        ))}
      </div>
      <p class="muted">An empty field uses the value of the service. Leases that run keep their length.</p>
    </Confirmation>
  )
}
