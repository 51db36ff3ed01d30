import { readFileSync } from 'node:fs'

/** For the store, the log, listening sockets, other nodes and what the system needs. */
const RESERVED_HANDLES = 80
/** However few files the process may open, some connections are tried. */
const FEWEST_CONNECTIONS = 16

/** How many files, connections among them, this process may have open. */
export function openFilesLimit(): number {
  try {
    const [, limit] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
    return limit === undefined ? Number.POSITIVE_INFINITY : Number(limit)
  } catch {
    return limitByReport()
  }
}

/** Where there is no /proc. A report takes some milliseconds to make. */
function limitByReport(): number {
  const report = Object.assign(process.report, { excludeNetwork: true })
  const { userLimits } = report.getReport() as { userLimits?: { open_files?: { soft?: unknown } } }
  const limit = Number(userLimits?.open_files?.soft)
  return Number.isFinite(limit) && limit > 0 ? limit : Number.POSITIVE_INFINITY
}

/** At the limit itself the system refuses connections without a word, and the store cannot open a file. */
export function connectionsFor(openFiles: number): number {
  return Math.max(FEWEST_CONNECTIONS, openFiles - RESERVED_HANDLES)
}
