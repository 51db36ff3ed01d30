const MAX_EDITS = 2

/** The candidate that a misspelt field name most likely stands for. */
export function didYouMean(field: string, candidates: readonly string[]): string | undefined {
  const sought = simplified(field)
  let best: string | undefined
  let fewest = MAX_EDITS + 1
  for (const candidate of candidates) {
    const target = simplified(candidate)
    // Comparing two lengths first keeps a hostile, very long name from costing anything.
    if (Math.abs(target.length - sought.length) > MAX_EDITS) continue
    const edits = editDistance(sought, target)
    if (edits < fewest) {
      fewest = edits
      best = candidate
    }
  }
  return best
}

/** The contract mixes camelCase and snake_case: a name in the wrong style is the same name. */
function simplified(name: string): string {
  return name.replaceAll(/[_\-\s]/g, '').toLowerCase()
}

function editDistance(from: string, to: string): number {
  let previous = Array.from({ length: to.length + 1 }, (_, column) => column)
  for (let row = 1; row <= from.length; row += 1) {
    const current = [row]
    for (let column = 1; column <= to.length; column += 1) {
      const substitution = (previous[column - 1] ?? 0) + (from[row - 1] === to[column - 1] ? 0 : 1)
      const deletion = (previous[column] ?? 0) + 1
      const insertion = (current[column - 1] ?? 0) + 1
      current.push(Math.min(substitution, deletion, insertion))
    }
    previous = current
  }
  return previous[to.length] ?? 0
}
