import { type TaskSettingsAnswer, taskSettingsAnswerSchema, taskSettingsRequestSchema } from '@baton/protocol'
import type { FastifyInstance } from 'fastify'
import type { LeaseSetting } from '../../handoff/rules/policy.ts'
import type { SettingsOfTask } from '../../handoff/views/queries.ts'
import { mayAccessOthers, ofNobody, requireOwn, requireWeightLimit } from '../admission/token-limits.ts'
import type { Token } from '../admission/tokens.ts'
import { RequestProblem } from '../answers/problems.ts'
import { presentSettings, settingsChange } from '../answers/task-view.ts'
import type { RouteContext } from '../route-context.ts'
import { brokenField, operation, unknownTask } from './operation.ts'

const leaseSettings: Readonly<Record<LeaseSetting, string>> = {
  levelBarrier: 'a level barrier',
  maxLeases: 'a limit',
  pauseAfterFailures: 'a pause after failures',
}

export const withoutLeases = (setting: LeaseSetting) =>
  brokenField(
    `/${setting}`,
    `${leaseSettings[setting]} requires leases, and this service delivers at most once`,
  )

export function settingsRoutes(app: FastifyInstance, context: RouteContext): void {
  const { handOff, requesterOf } = context
  const view = (task: Pick<SettingsOfTask, 'taskId' | 'settings' | 'levelBarrier'>): TaskSettingsAnswer => ({
    taskId: task.taskId,
    settings: presentSettings(handOff.policy, task),
  })

  const requireRight = (token: Token | null, known: SettingsOfTask | null): void => {
    if (known?.calledBack !== true) throw ofNobody()
    requireOwn(token, known)
  }

  operation(app, context, 'GET', '/tasks/:taskId/settings', {
    id: 'settings',
    summary: 'The settings that apply to a task',
    tag: 'tasks',
    access: 'task',
    answers: [taskSettingsAnswerSchema, 'The settings of the task'],
    answer: async ({ path: { taskId }, token }) => {
      const known = await handOff.views.taskSettings(taskId)
      if (known === null) throw unknownTask(taskId)
      if (!mayAccessOthers(token, 'operator', 'viewer')) requireRight(token, known)
      return view(known)
    },
  })

  operation(app, context, 'PATCH', '/tasks/:taskId/settings', {
    id: 'changeSettings',
    summary: 'Change settings of a task; what is not named stays as it is',
    tag: 'tasks',
    access: 'settings',
    body: taskSettingsRequestSchema,
    answers: [
      taskSettingsAnswerSchema,
      'The settings that apply from now on; repeating the request has no further effect',
    ],
    answer: async ({ path: { taskId }, body, token, raw }) => {
      if (!mayAccessOthers(token, 'operator')) requireRight(token, await handOff.views.taskSettings(taskId))
      const settings = settingsChange(body)
      if (settings.weight !== undefined) requireWeightLimit(token, settings.weight)
      const result = await handOff.control({ verb: 'settings', taskId, settings }, requesterOf(raw, body))
      switch (result.kind) {
        case 'applied': {
          const { settings: own = null, levelBarrier = false } = result
          return view({ taskId, settings: own, levelBarrier })
        }
        case 'task_cancelled':
          throw new RequestProblem('task_cancelled', 'the task is cancelled: settings have no effect')
        case 'backoff_max_shorter':
          throw brokenField(
            settings.backoffMaxMillis == null ? '/backoffSeconds' : '/backoffMaxSeconds',
            'backoffMaxSeconds of the task must not be less than its backoffSeconds',
          )
        case 'needs_leases':
          throw withoutLeases(result.setting)
        default:
          throw new Error(`settings were answered ${result.kind}`)
      }
    },
  })
}
