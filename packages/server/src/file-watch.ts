import { type Stats, statSync } from 'node:fs'
import { stat } from 'node:fs/promises'

const POLL_MILLIS = 1000

export interface FileWatch {
  close(): void
}

/**
 * Calls `changed` when one of the files was written or replaced. Call it before the files are first read, so
 * that no later change is missed. It polls once a second, because file system notifications do not work for
 * mounted files, nor for the symbolic links that Kubernetes swaps.
 *
 * With `whenQuiet` it waits until a poll finds no further change, for related files that are written one
 * after another.
 */
export function watchFiles(
  paths: readonly string[],
  changed: () => void,
  { whenQuiet = false, pollMillis = POLL_MILLIS } = {},
): FileWatch {
  let known = paths.map(marksNow).join('\n')
  let last = known
  let isLooking = false
  let isClosed = false
  const look = async () => {
    if (isLooking) return
    isLooking = true
    const seen = (await Promise.all(paths.map(marksOf))).join('\n')
    isLooking = false
    const isQuiet = seen === last
    last = seen
    if (seen === known || (whenQuiet && !isQuiet)) return
    known = seen
    if (!isClosed) changed()
  }
  const timer = setInterval(() => void look(), pollMillis).unref()
  return {
    close: () => {
      isClosed = true
      clearInterval(timer)
    },
  }
}

const marks = ({ ino, size, mtimeMs, ctimeMs }: Stats) => [ino, size, mtimeMs, ctimeMs].join()
const absent = (error: unknown) => String((error as NodeJS.ErrnoException).code)

function marksNow(path: string): string {
  try {
    return marks(statSync(path))
  } catch (error) {
    return absent(error)
  }
}

async function marksOf(path: string): Promise<string> {
  return stat(path).then(marks, absent)
}
