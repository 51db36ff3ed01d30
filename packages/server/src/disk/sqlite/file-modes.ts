import { chmodSync, closeSync, fchmodSync, mkdirSync, openSync, statSync } from 'node:fs'
import { join } from 'node:path'

/** For this user alone: lease ids are secrets, and whoever writes to the data could change everything. */
const FOLDER_MODE = 0o700
const FILE_MODE = 0o600
const OTHERS = 0o077

/** Whatever the umask. */
export function makePrivateFolder(path: string): void {
  mkdirSync(path, { mode: FOLDER_MODE })
  chmodSync(path, FOLDER_MODE)
}

/**
 * Makes an empty file, whatever the umask, unless there is one. SQLite takes it for a new database, and gives the files
 * beside it the same mode.
 */
export function makePrivateFile(path: string): void {
  let file: number
  try {
    file = openSync(path, 'wx', FILE_MODE)
  } catch {
    // It is there, or SQLite says why it cannot be made.
    return
  }
  fchmodSync(file, FILE_MODE)
  closeSync(file)
}

/**
 * Takes the files from others that earlier versions or other hands left open to them. The folder is left as it is: it
 * may have been made for others, too. Returns what to tell the operator.
 */
export function closeToOthers(folder: string, names: readonly string[]): string[] {
  // There is no such thing as these modes.
  if (process.platform === 'win32') return []
  const warnings: string[] = []
  const folderMode = openMode(folder)
  if (folderMode !== undefined)
    warnings.push(
      `the data folder ${folder} is open to other users (mode ${folderMode}): chmod 700 ${folder}`,
    )
  const closed: string[] = []
  for (const name of names) {
    const path = join(folder, name)
    const mode = openMode(path)
    if (mode === undefined) continue
    if (hasClosed(path)) closed.push(`${name} (mode ${mode})`)
    else
      warnings.push(`${path} is open to other users (mode ${mode}) and not ours to close: chmod 600 ${path}`)
  }
  if (closed.length > 0)
    warnings.push(`files in ${folder} were open to other users and no longer are: ${closed.join(', ')}`)
  return warnings
}

function hasClosed(path: string): boolean {
  try {
    chmodSync(path, FILE_MODE)
    return true
  } catch {
    return false
  }
}

/** The mode of what others may use; undefined when they may not, or nothing is there. */
function openMode(path: string): string | undefined {
  const mode = statSync(path, { throwIfNoEntry: false })?.mode ?? 0
  return (mode & OTHERS) === 0 ? undefined : (mode & 0o777).toString(8)
}
