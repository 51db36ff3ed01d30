import { globSync, readFileSync } from 'node:fs'
import { parseSync, Visitor } from 'vite'
import { root } from './markdown.ts'

/** The texts of sources, without comments: string literals, and templates without their values. */
export function textsOf(pattern: string): string[] {
  const texts: string[] = []
  const visitor = new Visitor({
    Literal: ({ value }) => {
      if (typeof value === 'string') texts.push(value)
    },
    TemplateElement: ({ value }) => {
      texts.push(value.cooked ?? value.raw)
    },
  })
  for (const path of globSync(pattern, { cwd: root })) {
    const { program, errors } = parseSync(path, readFileSync(root + path, 'utf8'))
    if (errors.length > 0) throw new Error(`${path} cannot be parsed: ${errors[0]?.message}`)
    visitor.visit(program)
  }
  return texts
}

/**
 * The quoted messages that the texts do not contain. A `…` in a quote stands for a value or for more of the
 * message; each part beside it must be in a text.
 */
export function unknownQuotes(quotes: readonly string[], texts: readonly string[]): string[] {
  return quotes.filter((quote) => partsOf(quote).some((part) => !texts.some((text) => text.includes(part))))
}

/** Punctuation beside a `…` may belong to another text. */
const partsOf = (quote: string): string[] =>
  quote
    .split('…')
    .map((part) => part.replaceAll(/^[\s:;,]+|[\s:;,]+$/g, ''))
    .filter((part) => part !== '')
