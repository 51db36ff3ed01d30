#!/usr/bin/env node
import { exitCodes } from './exit-codes.ts'
import { nodeFault } from './node-version.ts'

// Static imports are resolved before anything runs: nothing that an older Node lacks may be among them.
const fault = nodeFault(process.versions.node)
if (fault === undefined) {
  const { enableCompileCache } = await import('node:module')
  // Compiling what it loads is half of what a short command costs; from the second run on this saves it.
  enableCompileCache()
  const { dispatch } = await import('./dispatch.ts')
  await dispatch(process.argv.slice(2))
} else {
  process.stderr.write(`${fault}, ${process.execPath}\n`)
  process.exitCode = exitCodes.refused
}
