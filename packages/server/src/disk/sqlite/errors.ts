import { StoreRefused, StoreUnavailable } from '../../handoff/store.ts'

const BUSY = 5
const READ_ONLY = 8
const DAMAGED = 11
const FULL = 13
const CANNOT_OPEN = 14
const NOT_A_DATABASE = 26

/** Failures of the operating system or the disk, as opposed to bad requests or bugs. */
const UNAVAILABLE = new Map([
  [BUSY, 'another process has locked the data file'],
  [6, 'the data file is locked'],
  [7, 'the process is out of memory'],
  [READ_ONLY, 'the data folder is read-only'],
  [10, 'reading or writing the data file failed'],
  [DAMAGED, 'the data file is damaged'],
  [FULL, 'the disk of the data folder is full'],
  [CANNOT_OPEN, 'the data file cannot be opened'],
  [15, 'another process has locked the data file'],
  [NOT_A_DATABASE, 'the data file is not a database'],
])

function primaryCode(error: unknown): number | undefined {
  const code = (error as { errcode?: unknown } | null)?.errcode
  return typeof code === 'number' ? code & 0xff : undefined
}

export function isBusy(error: unknown): boolean {
  return primaryCode(error) === BUSY
}

/** Undefined for errors that the disk did not cause. */
export function asUnavailable(error: unknown): StoreUnavailable | undefined {
  if (error instanceof StoreUnavailable) return error
  const code = primaryCode(error)
  const reason = code === undefined ? undefined : UNAVAILABLE.get(code)
  if (reason === undefined) return undefined
  const remedy = 'nothing of this request was stored; send it again after the problem is fixed'
  return new StoreUnavailable(code === FULL ? 'store_full' : 'store_unavailable', `${reason}; ${remedy}`, {
    cause: error,
  })
}

/** For the operator who starts the service. Bugs are returned unchanged. */
export function asRefused(error: unknown, folder: string, file: string): unknown {
  const found = foundAtStart(error, file)
  if (found === undefined) return error
  const [reason, remedy] = found
  return new StoreRefused(
    `the data folder ${folder} cannot be used: ${reason}; ${remedy}, or choose another folder with --data`,
    { cause: error },
  )
}

/** For the operator who reads a data file or a backup. Bugs are returned unchanged. */
export function unreadable(error: unknown, file: string): unknown {
  const code = primaryCode(error)
  if (code === undefined) return error
  const remedies = new Map([
    [DAMAGED, 'is damaged; use another backup'],
    [NOT_A_DATABASE, 'is damaged, or not a data file or backup of Baton'],
    [CANNOT_OPEN, 'cannot be opened; give this user permission to read it and to write in its folder'],
  ])
  const found = remedies.get(code)
  const reason = UNAVAILABLE.get(code)
  if (found === undefined && reason === undefined) return error
  return new StoreRefused(`${file} ${found ?? `cannot be read: ${reason}`}`, { cause: error })
}

function foundAtStart(error: unknown, file: string): readonly [reason: string, remedy: string] | undefined {
  const code = primaryCode(error)
  switch (code) {
    case undefined: {
      // Creating the folder failed.
      const { code: systemCode, syscall, message } = error as NodeJS.ErrnoException
      if (systemCode === undefined || syscall === undefined) return undefined
      if (systemCode === 'EEXIST') return ['a file with this name exists', 'move the file to another place']
      return [message, 'fix this and restart']
    }
    case READ_ONLY:
      return ['the folder is read-only', 'give this user write permission']
    case CANNOT_OPEN:
      return [`${file} cannot be opened`, 'give this user write permission']
    case DAMAGED:
      return [`${file} is damaged`, 'restore it from a backup']
    case NOT_A_DATABASE:
      return [`${file} is not a database and was not changed`, 'move the file to another place']
    case FULL:
      return ['the disk is full', 'free disk space']
    default: {
      const reason = UNAVAILABLE.get(code)
      return reason === undefined ? undefined : [reason, 'fix this and restart']
    }
  }
}
