import { accessSync, constants, statSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { CommandUnusable } from './command-run.ts'

/** Throws where a command cannot be run, before anything is pulled for it. Windows has rules of its own for what can be. */
export function checkCommand(command: string, path = process.env['PATH'] ?? ''): void {
  if (process.platform === 'win32') return
  if (command.includes('/')) {
    const fault = faultOf(command)
    if (fault !== undefined) throw new CommandUnusable(command, fault)
    return
  }
  let fault: NodeJS.ErrnoException | undefined
  for (const folder of path.split(delimiter)) {
    const found = faultOf(join(folder === '' ? '.' : folder, command))
    if (found === undefined) return
    // That a file is there and must not be run says more than that others are not there.
    if (found.code !== 'ENOENT' && found.code !== 'ENOTDIR') fault ??= found
  }
  throw new CommandUnusable(command, fault ?? Object.assign(new Error('not found'), { code: 'ENOENT' }))
}

function faultOf(path: string): NodeJS.ErrnoException | undefined {
  try {
    accessSync(path, constants.X_OK)
    // A folder may be entered, which is called the same.
    return statSync(path).isFile() ? undefined : Object.assign(new Error('not a file'), { code: 'EACCES' })
  } catch (error) {
    return error as NodeJS.ErrnoException
  }
}
