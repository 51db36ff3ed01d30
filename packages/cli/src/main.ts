#!/usr/bin/env node
import { exitCodes } from './errors.ts'

/** As in `engines`, which npm only warns about. */
export const OLDEST_NODE = '22.18'

/** Why this Node will not do. An older one would fail over the first thing that it lacks, in words of its own. */
export function nodeFault(version: string): string | undefined {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const [leastMajor = 0, leastMinor = 0] = OLDEST_NODE.split('.').map(Number)
  const isNewEnough = major > leastMajor || (major === leastMajor && minor >= leastMinor)
  return isNewEnough ? undefined : `baton needs Node ${OLDEST_NODE} or newer; this is ${version}`
}

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
