import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { CloudEvent } from '@baton/client'

/** Runs the command to its end, with the event on its stdin. Answers why it failed, or undefined. */
export async function runForEvent(
  [command = '', ...args]: readonly string[],
  event: CloudEvent,
  url: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  const child = spawn(command, args, {
    stdio: ['pipe', 'inherit', 'inherit'],
    env: {
      ...process.env,
      BATON_URL: url,
      BATON_EVENT_TYPE: event.type,
      BATON_EVENT_ID: event.id,
      BATON_TASK_ID: event.subject,
    },
  })
  // A SIGTERM to this program alone ends the command as well.
  const end = () => child.kill('SIGTERM')
  signal.addEventListener('abort', end)
  // It need not read its stdin.
  child.stdin.on('error', () => {})
  child.stdin.end(`${JSON.stringify(event)}\n`)
  try {
    const [code, killed] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null]
    if (code === 0) return undefined
    return killed === null ? `exit code ${code}` : `ended by ${killed}`
  } catch (error) {
    return (error as Error).message
  } finally {
    signal.removeEventListener('abort', end)
  }
}
