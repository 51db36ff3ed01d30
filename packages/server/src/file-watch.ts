import { type Stats, statSync } from 'node:fs'
import { stat } from 'node:fs/promises'

const POLL_MILLIS = 1000

export interface FileWatch {
  close(): void
}

/**
 * Begin before the files are read: what changes from then on is noticed. Calls `changed` when one of the files was written or replaced. By looking once a second, not by notices of the
 * system: those do not come for files that are mounted, nor through symbolic links as Kubernetes swaps them.
 *
 * With `whenQuiet` it waits until a look finds nothing new, for files that belong together and are written one after the
 * other.
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
