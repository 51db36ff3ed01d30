/** The exit codes of `baton`, listed in docs/command.md. */
export const exitCodes = {
  /** Success. */
  ok: 0,
  /** The service refused the request or a part of it; or a watched task failed or is incomplete. */
  refused: 1,
  /** The command line is invalid. */
  usage: 2,
  /** Nothing was ready, or there is no such task or instance. */
  nothing: 3,
  /** The input breaks the contract, and none of it was sent. */
  contract: 4,
  /** The service cannot be reached. */
  unreachable: 5,
  /** A task that `baton wait` waited for is stalled: it needs an operator. */
  stalled: 6,
  /** A task that `baton wait` waited for is cancelled. */
  cancelled: 7,
  /** The timeout of `baton wait` has passed. */
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

/** The meaning of the exit code of a command that `baton work` runs. */
export const commandExitCodes = {
  done: 0,
  /** As in sysexits.h: a temporary failure. The partition is released, which costs no attempt. */
  release: 75,
  /** As in qmail: a permanent failure. The partition fails without another attempt. */
  doNotRetry: 100,
} as const

/** The command line is invalid. The message says what to type instead. */
export class UsageError extends Error {
  override name = 'UsageError'
}

/** A store or a file cannot be used. The message says why and what to do. */
export class Refusal extends Error {
  override name = 'Refusal'
}

/** The command was ended by a signal. The exit code says by which one, as in shells. */
export class Interruption extends Error {
  override name = 'Interruption'
  readonly exitCode: number

  constructor(signal: 'SIGINT' | 'SIGTERM') {
    super(signal === 'SIGINT' ? 'interrupted' : 'terminated')
    this.exitCode = signal === 'SIGINT' ? exitCodes.interrupted : exitCodes.terminated
  }
}

/** Runs a function that the first Ctrl-C aborts gracefully. A second Ctrl-C ends the process at once. */
export async function interruptible<T>(run: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController()
  const listeners = (['SIGINT', 'SIGTERM'] as const).map((name) => {
    const listener = () => {
      const interruption = new Interruption(name)
      if (controller.signal.aborted) process.exit(interruption.exitCode)
      controller.abort(interruption)
    }
    process.on(name, listener)
    return { name, listener }
  })
  try {
    return await run(controller.signal)
  } finally {
    for (const { name, listener } of listeners) process.off(name, listener)
  }
}
