import type { Command } from '../command-line.ts'
import { startFleet } from '../demo/fleet.ts'
import { startProduction } from '../demo/production.ts'
import { startService } from '../demo/service.ts'
import { exitCodes } from '../errors.ts'
import { print } from '../terminal.ts'

export const demo: Command = {
  operands: '',
  operandCount: [0, 0],
  details:
    'Starts a service on a temporary store, a producer and six workers of different speed and reliability, to look at\non the page. Ctrl-C stops everything and removes the store.',
  flags: {
    port: {
      kind: 'number',
      placeholder: 'N',
      maximum: 65_535,
      default: 0,
      description: 'port of the service; 0 selects a free port',
    },
  },
  examples: [{ line: 'baton demo --port 7070', says: 'On the usual port of a service' }],
  run: async (given) => {
    const stopped = untilSignal()
    const service = await startService(given.numberOrDefault('port'))
    if (service === undefined) return exitCodes.refused
    const stopProduction = await startProduction(service.url)
    const stopFleet = startFleet(service.url)
    print(
      `Open ${service.url} in a browser. Tasks, failures and crashes of workers are simulated. Ctrl-C stops.`,
    )
    await stopped
    stopProduction()
    await stopFleet()
    await service.stop()
    return exitCodes.ok
  },
}

/** Later signals are ignored: the store is about to be removed. */
function untilSignal(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => resolve())
  })
}
