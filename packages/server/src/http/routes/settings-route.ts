import { taskSettingsAnswerSchema, taskSettingsRequestSchema } from '@baton/protocol'
import type { FastifyInstance } from 'fastify'
import { mayOthers, requireOwn, requireTaskLimit } from '../admission/reach.ts'
import { RequestProblem } from '../answers/problems.ts'
import { settingsChange, viewSettings } from '../answers/task-settings-view.ts'
import { answers } from '../api-document/documented.ts'
import type { Service } from '../service.ts'
import { brokenControl, controlBody } from './control-routes.ts'
import { type TaskParams, taskIdOf, taskParams } from './task-parameter.ts'

export function settingsRoute(app: FastifyInstance, { handOff, callers }: Service): void {
  app.route<{ Params: TaskParams }>({
    method: 'PUT',
    url: '/tasks/:taskId/settings',
    config: { access: 'settings' },
    schema: {
      operationId: 'settings',
      summary: 'Set leases, attempts, back-off, barrier, limit and share of one task',
      tags: ['tasks'],
      params: taskParams,
      body: taskSettingsRequestSchema,
      response: answers(
        taskSettingsAnswerSchema,
        'What holds from now on; repeating it changes nothing more',
      ),
    },
    handler: async (request, reply) => {
      const taskId = taskIdOf(request.params)
      const caller = callers.of(request.raw.headers)
      requireTaskLimit(caller, taskId)
      // Any producer may set up a task that has no call-backs yet.
      const known = mayOthers(caller, 'operator') ? null : await handOff.task(taskId)
      if (known !== null) requireOwn(caller, known.facts)
      const settings = settingsChange(controlBody(taskSettingsRequestSchema, request.body))
      const result = await handOff.control({ verb: 'settings', taskId, settings })
      if (result.kind === 'task_cancelled')
        throw new RequestProblem('task_cancelled', 'the task is cancelled: settings can do nothing for it')
      if (result.kind === 'barrier_without_leases')
        throw brokenControl([
          {
            pointer: '/levelBarrier',
            detail: 'this service delivers at most once, and a level barrier needs leases',
          },
        ])
      if (result.kind !== 'applied') throw new Error(`settings were answered ${result.kind}`)
      const { settings: own = null, levelBarrier = false } = result
      return reply.send({ taskId, settings: viewSettings(handOff.policy, { settings: own, levelBarrier }) })
    },
  })
}
