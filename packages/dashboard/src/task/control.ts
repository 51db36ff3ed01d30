import type { ControlAnswer } from '@baton/protocol'
import { useState } from 'preact/hooks'
import { say } from '../parts/notices.tsx'
import { explained } from '../service/connection.ts'

/** Runs one order at a time, says what came of it, and has the task looked at again. */
export function useControl(refresh: () => void) {
  const [busy, setBusy] = useState(false)
  const order = async (run: () => Promise<ControlAnswer>, words: (answer: ControlAnswer) => string) => {
    setBusy(true)
    try {
      say('said', words(await run()))
      return true
    } catch (error) {
      say('failed', explained(error))
      return false
    } finally {
      setBusy(false)
      refresh()
    }
  }
  return { busy, order }
}
