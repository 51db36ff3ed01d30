import { test } from 'vitest'
import { RestartableService } from '../support/restartable-service.ts'
import { expectNothingLost, KILLS, WEBHOOK_FLAGS } from './support/kills.ts'

test(`if the service is killed ${KILLS} times, every event arrives, in order for each task`, async () => {
  const service = await RestartableService.start(...WEBHOOK_FLAGS, '--log-level', 'warn')
  await expectNothingLost({
    get url() {
      return service.url
    },
    killed: async () => {
      await service.kill()
      await service.startAgain()
    },
  })
}, 3_600_000)
