import { parseArgs } from 'node:util'
import { startFleet } from './fleet.ts'
import { startProduction } from './production.ts'
import { startService } from './service.ts'

const USAGE = 'usage: npm run demo [-- --port <number>]; without one a free port is picked\n'

const { port, help } = readArguments()
if (help) {
  process.stdout.write(USAGE)
  process.exit(0)
}

const service = await startService(port).catch((error: Error) => {
  process.stderr.write(`${error.message}\n`)
  process.exit(1)
})
const stopProduction = await startProduction(service.url)
const sendFleetHome = startFleet(service.url)

process.stdout.write(`
Baton's demo runs at  ${service.url}

A producer calls tasks back, and six workers of different speed take them: one fails now and then, one goes
down in the middle of its work and is started again. Open the page and watch; Ctrl-C ends everything.
`)

let isEnding = false
const end = async () => {
  if (isEnding) return
  isEnding = true
  stopProduction()
  await sendFleetHome()
  await service.stop()
  process.exit(0)
}
process.on('SIGINT', () => void end())
process.on('SIGTERM', () => void end())

function readArguments(): { port: string; help: boolean } {
  try {
    const port = { type: 'string', default: '0' } as const
    return parseArgs({ options: { port, help: { type: 'boolean', short: 'h', default: false } } }).values
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n${USAGE}`)
    process.exit(2)
  }
}
