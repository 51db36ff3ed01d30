/** What the exit code of `baton` says; listed in docs/cli.md. */
export const exitCodes = {
  /** As asked. */
  ok: 0,
  /** The service refused it, or a part of it; a watched task did not end well, or not whole. */
  refused: 1,
  /** The command line makes no sense. */
  usage: 2,
  /** Nothing was ready, or there is no such task or instance. */
  nothing: 3,
  /** What was to be sent breaks the contract; nothing of it was sent. */
  contract: 4,
  /** The service cannot be reached. */
  unreachable: 5,
  /** A task that `baton wait` waited for is stalled: only an operator can move it. */
  stalled: 6,
  /** A task that `baton wait` waited for is cancelled. */
  cancelled: 7,
  /** The time that `baton wait` was given is over. */
  timeOver: 124,
  /** The command of `baton work` cannot be run. */
  notExecutable: 126,
  /** The command of `baton work` does not exist. */
  notFound: 127,
  /** Ended by Ctrl-C. */
  interrupted: 130,
  /** Ended by SIGTERM. */
  terminated: 143,
} as const

/** What the exit code of a command run by `baton work` says. */
export const commandExitCodes = {
  done: 0,
  /** As in sysexits.h: a temporary failure. Given back, costs no attempt. */
  release: 75,
  /** As with qmail's programs: a permanent failure. Failed, and not worth another attempt. */
  doNotRetry: 100,
} as const

/** The command line makes no sense; the text says what to type instead. */
export class UsageError extends Error {
  override name = 'UsageError'
}

/** A store or a file that cannot be used as asked; the message says why and what to do. */
export class Refusal extends Error {
  override name = 'Refusal'
}
