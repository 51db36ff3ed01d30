/** In a shown answer, this stands for more fields of an object or more elements of an array. */
export const MORE = '…'

/** Parses the JSON of a shown answer. A `…` becomes a field, or an element, with that name. */
export function parseShown(text: string): unknown {
  const open: string[] = []
  let inString = false
  let json = ''
  for (let at = 0; at < text.length; at += 1) {
    const character = text.charAt(at)
    if (inString) {
      json += character
      if (character === '\\') json += text.charAt(++at)
      else if (character === '"') inString = false
      continue
    }
    if (character === '"') inString = true
    else if (character === '{' || character === '[') open.push(character)
    else if (character === '}' || character === ']') open.pop()
    if (character !== MORE) json += character
    else json += open.at(-1) === '{' ? `"${MORE}": null` : `"${MORE}"`
  }
  return JSON.parse(json)
}
