import { describe, expect, test } from 'vitest'
import { Likeness } from '../docs/support/likeness.ts'
import { fencesOf, readDocument, sectionNamed } from '../docs/support/markdown.ts'
import { runInBash } from '../docs/support/shell.ts'
import { ServiceProcess } from '../support/service-process.ts'

const SECTION = 'A first hand-off'
const URL_LINE = 'BATON=http://127.0.0.1:7070'
const END = '--- end of a block ---'

interface Block {
  readonly commands: string
  /** The answer shown below the commands. */
  readonly shown: string | null
  /** Whether only a part of the answer is shown. */
  readonly inPart: boolean
}

describe('the first hand-off of README.md', () => {
  const fences = fencesOf(sectionNamed(readDocument('README.md'), SECTION).text)
  const blocks = fences.flatMap(({ language, text }, at): Block[] => {
    const answer = fences[at + 1]
    if (language !== 'sh') return []
    if (answer === undefined || answer.language === 'sh')
      return [{ commands: text, shown: null, inPart: false }]
    return [{ commands: text, shown: answer.text, inPart: answer.language === 'jsonc' }]
  })

  test('shows what its own commands print', async () => {
    const service = await ServiceProcess.started()
    const script = blocks.map(({ commands }) => `${commands}\necho '\n${END}'`).join('\n')
    expect(script.split(URL_LINE)).toHaveLength(2)
    const output = await runInBash(script.replace(URL_LINE, `BATON=${service.url}`))
    const printed = output.split(END).map((text) => text.trim())

    const likeness = new Likeness()
    for (const [at, { shown, inPart }] of blocks.entries()) {
      const real = printed[at] ?? ''
      if (shown === null) {
        expect(real).toBe('')
        continue
      }
      const expected = JSON.parse(inPart ? shown.replaceAll(/^\s*\/\/.*$/gm, '') : shown)
      const answered = JSON.parse(real)
      const compared = inPart ? pick(answered, Object.keys(expected)) : answered
      expect(likeness.differences(expected, compared)).toEqual([])
    }
  })

  test('is a hand-off from call-back to done', () => {
    const commands = blocks.map((block) => block.commands).join('\n')
    for (const path of ['/call-back', '/pull', '/settle', '/tasks/']) expect(commands).toContain(path)
    expect(blocks.filter(({ shown }) => shown !== null)).toHaveLength(4)
  })
})

function pick(answer: Record<string, unknown>, fields: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(fields.map((field) => [field, answer[field]]))
}
