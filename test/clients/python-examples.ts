import { BatonClient } from '@baton/client'
import { expect } from 'vitest'
import { descriptors } from '../../packages/client/test/support/descriptors.ts'
import { pythonHandOff, pythonIn } from '../../release/python.ts'

/** Runs the programs of the README and the guides against a service, and checks what they did. */
export async function runPythonExamples(
  url: string,
  run: (program: string) => Promise<string>,
): Promise<void> {
  await run(pythonHandOff(url))
  expect(await new BatonClient(url).task('orders-2026-03')).toMatchObject({
    state: 'done',
    sealed: true,
    reported: { declared: 25_000, reported: 25_000, mismatched: 0 },
  })

  const guide = pythonIn('docs/client-python.md', url).replace(', count)', ', count, until_idle=True)')
  expect(await run(guide)).toBe('100 0\ndone\n')

  const [cron = ''] = pythonIn('docs/workers.md', url).split('from airflow')
  await new BatonClient(url).callBack(descriptors('nightly', 3))
  await run(cron)
  expect(await new BatonClient(url).task('nightly')).toMatchObject({ state: 'done' })
}
