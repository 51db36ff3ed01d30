import { Likeness } from '../../docs/support/likeness.ts'
import { fencesOf, readDocument, sectionNamed } from '../../docs/support/markdown.ts'
import { runInBash } from '../../docs/support/shell.ts'

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

/** The commands of README.md, each with the answer that it shows. */
export function firstHandOff(): readonly Block[] {
  const fences = fencesOf(sectionNamed(readDocument('README.md'), SECTION).text)
  return fences.flatMap(({ language, text }, at): Block[] => {
    const answer = fences[at + 1]
    if (language !== 'sh') return []
    if (answer === undefined || answer.language === 'sh')
      return [{ commands: text, shown: null, inPart: false }]
    return [{ commands: text, shown: answer.text, inPart: answer.language === 'jsonc' }]
  })
}

/** Runs the commands of README.md against a service. Returns where an answer differs from the one shown. */
export async function differencesInFirstHandOff(url: string): Promise<string[]> {
  const blocks = firstHandOff()
  const script = blocks.map(({ commands }) => `${commands}\necho '\n${END}'`).join('\n')
  if (script.split(URL_LINE).length !== 2) throw new Error(`README.md does not have the line ${URL_LINE}`)
  const output = await runInBash(script.replace(URL_LINE, `BATON=${url}`))
  const printed = output.split(END).map((text) => text.trim())
  const likeness = new Likeness()
  return blocks.flatMap(({ shown, inPart }, at) => {
    const real = printed[at] ?? ''
    if (shown === null) return real === '' ? [] : [`unexpected output: ${real}`]
    const expected = JSON.parse(inPart ? shown.replaceAll(/^\s*\/\/.*$/gm, '') : shown)
    const answered = JSON.parse(real)
    return likeness.differences(expected, inPart ? pick(answered, Object.keys(expected)) : answered)
  })
}

function pick(answer: Record<string, unknown>, fields: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(fields.map((field) => [field, answer[field]]))
}
