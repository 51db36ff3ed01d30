import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { fencesOf, root, sectionNamed } from './markdown.ts'

/** The commands of a section: its `sh` code blocks, with the lines of `instead` replacing the document's. */
export function commandsOf(document: string, title: string, instead: Record<string, string>): string[] {
  const blocks = fencesOf(sectionNamed(document, title).text).filter(({ language }) => language === 'sh')
  const unused = new Set(Object.keys(instead))
  const replaced = blocks.map(({ text }) =>
    text
      .split('\n')
      .map((line) => {
        if (!Object.hasOwn(instead, line)) return line
        unused.delete(line)
        return instead[line]
      })
      .join('\n'),
  )
  if (unused.size > 0) throw new Error(`${title} does not have the line ${[...unused].join(' or ')}`)
  return replaced
}

/** Runs commands as a person in a checkout would, with the Node version of the checkout. */
export async function runInBash(commands: string): Promise<string> {
  const { PATH = '', ...others } = process.env
  const { stdout } = await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', commands], {
    cwd: root,
    env: { ...others, PATH: `${root}node_modules/.bin:${PATH}` },
  })
  return stdout
}
