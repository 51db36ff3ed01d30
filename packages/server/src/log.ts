import { type Logger, pino } from 'pino'
import type { Config } from './config.ts'

export type ServiceLog = Logger

/**
 * Structured, to standard error: standard output carries the one line that says where the service listens. Of the
 * headers only the name of an instance is logged; should others slip into a line, the token in them does not.
 */
export function createLog(level: Config['logLevel']): ServiceLog {
  const secret = ['authorization', 'headers.authorization', '*.authorization', '*.headers.authorization']
  const destination = pino.destination({ dest: 2, sync: true })
  // On a full disk, or a terminal that was closed, lines are lost; nothing that they tell of is.
  destination.on('error', () => {})
  return pino({ level, base: { pid: process.pid }, redact: secret }, destination)
}
