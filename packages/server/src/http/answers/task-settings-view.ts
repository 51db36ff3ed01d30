import { type TaskSettings as ShownSettings, settingNames, type TaskSettingsRequest } from '@baton/protocol'
import type { Policy } from '../../handoff/rules/policy.ts'
import {
  policyOf,
  type TaskSettings,
  type TaskSettingsChange,
  weightOfTask,
} from '../../handoff/rules/task-settings.ts'

/**
 * The effective settings of a task in the wire format. Settings that the task does not override are those of
 * the service.
 */
export function viewSettings(
  policy: Policy,
  task: { readonly settings: TaskSettings | null; readonly levelBarrier: boolean },
): ShownSettings {
  const { settings, levelBarrier } = task
  const { leaseMillis, maxAttempts, backoffMillis, backoffMaxMillis } = policyOf(policy, task)
  const set = new Set(Object.keys(settings ?? {}).map((name) => name.replace('Millis', 'Seconds')))
  if (levelBarrier !== policy.levelBarrier) set.add('levelBarrier')
  return {
    leaseSeconds: leaseMillis / 1000,
    maxAttempts,
    backoffSeconds: backoffMillis / 1000,
    backoffMaxSeconds: backoffMaxMillis / 1000,
    levelBarrier,
    maxLeases: settings?.maxLeases ?? null,
    weight: weightOfTask(task),
    own: settingNames.filter((name) => set.has(name)),
  }
}

export function settingsChange(sent: TaskSettingsRequest): TaskSettingsChange {
  const { leaseSeconds, backoffSeconds, backoffMaxSeconds, ...others } = sent
  const millis = (name: string, seconds: number | undefined) =>
    seconds === undefined ? {} : { [name]: Math.round(seconds * 1000) }
  return {
    ...others,
    ...millis('leaseMillis', leaseSeconds),
    ...millis('backoffMillis', backoffSeconds),
    ...millis('backoffMaxMillis', backoffMaxSeconds),
  }
}
