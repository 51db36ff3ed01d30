import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { Interruption } from '../errors.ts'
import { confirmed } from './control.ts'

const CTRL_C = '\u0003'
const CTRL_D = '\u0004'

/** The answer to the prompt when these keys are typed, and the output meanwhile. */
async function typed(keys: string) {
  const streams = { input: new PassThrough(), output: new PassThrough() }
  const answer = confirmed('Give it up?', streams).catch((error: unknown) => error)
  streams.input.write(keys)
  const said = await answer
  streams.output.end()
  return { said, shown: await text(streams.output) }
}

test.each([
  ['y\r', true],
  ['Yes\r', true],
  ['n\r', false],
  ['\r', false],
  [CTRL_D, false],
])('the answer %j is read as %s', async (keys, meant) => {
  const { said, shown } = await typed(keys)
  expect(said).toBe(meant)
  expect(shown).toContain('Give it up? [y/N] ')
})

test('Ctrl-C ends the question, and later output starts on its own line', async () => {
  const { said, shown } = await typed(CTRL_C)
  expect(said).toBeInstanceOf(Interruption)
  expect(said).toMatchObject({ exitCode: 130 })
  expect(shown.endsWith('\n')).toBe(true)
})
