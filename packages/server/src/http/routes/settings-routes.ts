import { type TaskSettingsAnswer, taskSettingsAnswerSchema, taskSettingsRequestSchema } from '@baton/protocol'
import type { FastifyInstance } from 'fastify'
import type { SettingsOfTask } from '../../handoff/views/queries.ts'
import {
  mayAccessOthers,
  requireOwn,
  requireShared,
  requireTaskLimit,
  requireWeightLimit,
  type Token,
} from '../admission/tokens.ts'
import { RequestProblem } from '../answers/problems.ts'
import { settingsChange, viewSettings } from '../answers/task-view.ts'
import { answers } from '../api-document/route-schemas.ts'
import { type TaskParams, taskIdOf, taskParams, unknownTask } from '../requests/parameters.ts'
import type { Service } from '../service.ts'
import { brokenControl, controlBody } from './control-routes.ts'

/** A task or a table cannot have a limit in at-most-once delivery. */
export const limitWithoutLeases = {
  pointer: '/maxLeases',
  detail: 'a limit requires leases, and this service delivers at most once',
}

export function settingsRoutes(app: FastifyInstance, { handOff, tokens, requesterOf }: Service): void {
  const view = (task: Pick<SettingsOfTask, 'taskId' | 'settings' | 'levelBarrier'>): TaskSettingsAnswer => ({
    taskId: task.taskId,
    settings: viewSettings(handOff.policy, task),
  })

  const requireRight = (token: Token | null, known: SettingsOfTask | null): void => {
    if (known?.calledBack === true) requireOwn(token, known)
    else requireShared(token)
  }

  app.route<{ Params: TaskParams }>({
    method: 'GET',
    url: '/tasks/:taskId/settings',
    config: { access: 'task' },
    schema: {
      operationId: 'settings',
      summary: 'The settings that apply to a task',
      tags: ['tasks'],
      params: taskParams,
      response: answers(taskSettingsAnswerSchema, 'The settings of the task'),
    },
    handler: async ({ params, raw }, reply) => {
      const taskId = taskIdOf(params)
      const token = tokens.of(raw.headers)
      requireTaskLimit(token, taskId)
      const known = await handOff.views.taskSettings(taskId)
      if (known === null) throw unknownTask(taskId)
      if (!mayAccessOthers(token, 'operator', 'viewer')) requireRight(token, known)
      return reply.send(view(known))
    },
  })

  app.route<{ Params: TaskParams }>({
    method: 'PATCH',
    url: '/tasks/:taskId/settings',
    config: { access: 'settings' },
    schema: {
      operationId: 'changeSettings',
      summary: 'Change settings of a task; what is not named stays as it is',
      tags: ['tasks'],
      params: taskParams,
      body: taskSettingsRequestSchema,
      response: answers(
        taskSettingsAnswerSchema,
        'The settings that apply from now on; repeating the request has no further effect',
      ),
    },
    handler: async (request, reply) => {
      const taskId = taskIdOf(request.params)
      const token = tokens.of(request.raw.headers)
      requireTaskLimit(token, taskId)
      if (!mayAccessOthers(token, 'operator')) requireRight(token, await handOff.views.taskSettings(taskId))
      const settings = settingsChange(controlBody(taskSettingsRequestSchema, request.body))
      if (settings.weight !== undefined) requireWeightLimit(token, settings.weight)
      const by = requesterOf(request.raw, request.body)
      const result = await handOff.control({ verb: 'settings', taskId, settings }, by)
      switch (result.kind) {
        case 'applied': {
          const { settings: own = null, levelBarrier = false } = result
          return reply.send(view({ taskId, settings: own, levelBarrier }))
        }
        case 'task_cancelled':
          throw new RequestProblem('task_cancelled', 'the task is cancelled: settings have no effect')
        case 'backoff_max_shorter':
          throw brokenControl([
            {
              pointer: settings.backoffMaxMillis == null ? '/backoffSeconds' : '/backoffMaxSeconds',
              detail: 'backoffMaxSeconds of the task must not be less than its backoffSeconds',
            },
          ])
        case 'barrier_without_leases':
          throw brokenControl([
            {
              pointer: '/levelBarrier',
              detail: 'a level barrier requires leases, and this service delivers at most once',
            },
          ])
        case 'limit_without_leases':
          throw brokenControl([limitWithoutLeases])
        case 'pause_without_leases':
          throw brokenControl([
            {
              pointer: '/pauseAfterFailures',
              detail: 'a pause after failures requires leases, and this service delivers at most once',
            },
          ])
        default:
          throw new Error(`settings were answered ${result.kind}`)
      }
    },
  })
}
