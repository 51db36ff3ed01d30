import { exitCodes } from './errors.ts'

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
