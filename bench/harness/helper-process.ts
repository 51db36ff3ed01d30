import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { CleanUp } from './clean-up.ts'
import { endProcess } from './server-process.ts'

/**
 * The compile cache that `npm start` gives the service; without it every start would compile the sources
 * again.
 */
export const COMPILE_CACHE = {
  NODE_COMPILE_CACHE: fileURLToPath(new URL('../../node_modules/.cache/baton', import.meta.url)),
}

/**
 * A process that does measured work (the load client, a bare store loop) and is called over IPC: the harness
 * must not share an event loop with what it times.
 */
type Calls = Record<string, (input: never) => unknown>

type Input<C extends Calls, N extends keyof C> = Parameters<C[N]>[0]
type Output<C extends Calls, N extends keyof C> = Awaited<ReturnType<C[N]>>

interface CallSent {
  call: number
  name: string
  input: unknown
}

interface CallAnswered {
  call: number
  output?: unknown
  error?: string
}

/** In the helper: answers the calls of its parent process until the parent disconnects. */
export function answerCalls(calls: Calls): void {
  const send = (answer: CallAnswered) => process.send?.(answer)
  process.on('message', async ({ call, name, input }: CallSent) => {
    try {
      const work = calls[name]
      if (!work) throw new Error(`no call named ${name}`)
      send({ call, output: await work(input as never) })
    } catch (error) {
      send({ call, error: error instanceof Error ? (error.stack ?? error.message) : String(error) })
    }
  })
  process.on('disconnect', () => process.exit(0))
  // The harness decides when an interrupted run ends, so that it can still clean up through this process.
  process.on('SIGINT', () => {})
}

export interface Helper<C extends Calls> {
  pid: number
  call<N extends keyof C & string>(name: N, input: Input<C, N>): Promise<Output<C, N>>
  stop(): Promise<void>
}

export function startHelper<C extends Calls>(script: URL, cleanUp: CleanUp): Helper<C> {
  const child: ChildProcess = fork(script, {
    env: { ...process.env, ...COMPILE_CACHE },
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const waiting = new Map<number, { resolve: (output: unknown) => void; reject: (error: Error) => void }>()
  let calls = 0
  child.on('message', ({ call, output, error }: CallAnswered) => {
    const caller = waiting.get(call)
    waiting.delete(call)
    if (error === undefined) caller?.resolve(output)
    else caller?.reject(new Error(error))
  })
  child.on('exit', (code, signal) => {
    for (const caller of waiting.values()) {
      caller.reject(new Error(`helper ${script.pathname.split('/').at(-1)} ended (${signal ?? code})`))
    }
    waiting.clear()
  })
  const stop = () => endProcess(child)
  cleanUp.add(stop)
  return {
    pid: child.pid ?? 0,
    stop,
    call(name, input) {
      const call = ++calls
      return new Promise((resolve, reject) => {
        waiting.set(call, { resolve: resolve as (output: unknown) => void, reject })
        child.send({ call, name, input } satisfies CallSent)
      })
    },
  }
}
