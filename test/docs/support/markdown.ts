import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('../../..', import.meta.url))

export const readDocument = (path: string): string => readFileSync(root + path, 'utf8')

export interface Section {
  readonly title: string
  readonly depth: number
  /** Up to the next heading of any depth. */
  readonly text: string
}

/** A document split at its headings. A hash inside a code block is no heading. */
export function sectionsOf(document: string): Section[] {
  const sections: { title: string; depth: number; lines: string[] }[] = []
  let inCode = false
  for (const line of document.split('\n')) {
    if (line.startsWith('```')) inCode = !inCode
    const heading = inCode ? null : /^(#+) (.+)$/.exec(line)
    if (heading !== null) {
      sections.push({ title: heading[2] ?? '', depth: heading[1]?.length ?? 0, lines: [] })
    } else sections.at(-1)?.lines.push(line)
  }
  return sections.map(({ title, depth, lines }) => ({ title, depth, text: lines.join('\n') }))
}

export function sectionNamed(document: string, title: string): Section {
  const found = sectionsOf(document).find((section) => section.title === title)
  if (found === undefined) throw new Error(`there is no section "${title}"`)
  return found
}

/** The cells of every table row in a text, without header rows and rulers. */
export function tableRows(text: string): string[][] {
  const rows: string[][] = []
  const lines = text.split('\n')
  for (const [at, line] of lines.entries()) {
    const isHead = /^\|[\s:|-]+\|$/.test(lines[at + 1] ?? '')
    if (!line.startsWith('|') || isHead || /^\|[\s:|-]+\|$/.test(line)) continue
    const cells = line.slice(1, line.lastIndexOf('|')).split(/(?<!\\)\|/)
    rows.push(cells.map((cell) => cell.trim().replaceAll('\\|', '|')))
  }
  return rows
}

export const inCode = (cell: string): string[] =>
  [...cell.matchAll(/`([^`]+)`/g)].map((match) => match[1] ?? '')

export interface Fence {
  readonly language: string
  readonly text: string
}

export function fencesOf(text: string): Fence[] {
  const fences = text.matchAll(/^```(\S*)\n([\s\S]*?)^```$/gm)
  return [...fences].map((match) => ({ language: match[1] ?? '', text: match[2] ?? '' }))
}
