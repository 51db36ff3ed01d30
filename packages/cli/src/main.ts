#!/usr/bin/env node
import { exitCodes } from './errors.ts'

/** The same as in `engines`, which npm only warns about. */
export const OLDEST_NODE = '22.18'

/**
 * Explains why this version of Node is too old. Without this check, it would fail at the first missing
 * feature with an obscure error.
 */
export function nodeFault(version: string): string | undefined {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const [leastMajor = 0, leastMinor = 0] = OLDEST_NODE.split('.').map(Number)
  const isNewEnough = major > leastMajor || (major === leastMajor && minor >= leastMinor)
  return isNewEnough ? undefined : `baton requires Node ${OLDEST_NODE} or newer; this is Node ${version}`
}

// Static imports are resolved before any code runs, so they must not need a feature that an older Node lacks.
const fault = nodeFault(process.versions.node)
if (fault === undefined) {
  const { enableCompileCache } = await import('node:module')
  // Compiling the modules is a large part of a short command's run time. The cache saves it from the second
  // run on.
  enableCompileCache()
  const { dispatch } = await import('./dispatch.ts')
  await dispatch(process.argv.slice(2))
} else {
  process.stderr.write(`${fault}, ${process.execPath}\n`)
  process.exitCode = exitCodes.refused
}
