import { parseArgs } from 'node:util'
import { startFleet } from './fleet.ts'
import { startProduction } from './production.ts'
import { startService } from './service.ts'

const { values } = parseArgs({ options: { port: { type: 'string', default: '0' } } })

const service = await startService(values.port).catch((error: Error) => {
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
