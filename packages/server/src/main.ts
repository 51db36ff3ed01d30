import { runService } from './run-service.ts'

process.exitCode = await runService(process.argv.slice(2))
