/** A task id may be thousands of characters long, and a hint is read by people. */
const LONGEST_HINT = 200

/** The paths of the routes, for those who miss one by a slash or a capital letter. */
export class KnownPaths {
  readonly #patterns = new Map<string, readonly string[]>()

  /** `url` as a route has it, with `:name` for what varies. */
  add(url: string): void {
    if (!url.includes('*')) this.#patterns.set(url, segmentsOf(url))
  }

  /** The known path that differs from this one by nothing but slashes and the case of letters. */
  alike(path: string): string | undefined {
    // No hint would come of longer ones, and 32,000 slashes took two seconds to look through.
    if (path.length > 2 * LONGEST_HINT) return undefined
    const given = segmentsOf(path)
    for (const pattern of this.#patterns.values()) {
      // Within a path with a task id two slashes are a task id that is missing, not a slash too many.
      const segments = pattern.some(isVariable) ? given : given.filter((segment) => segment !== '')
      if (segments.length !== pattern.length) continue
      const meant = pattern.map((part, at) => fitting(part, segments[at] ?? ''))
      const url = `/${meant.join('/')}`
      if (!meant.includes(undefined) && url.length <= LONGEST_HINT) return url
    }
    return undefined
  }
}

/** Without the slashes at both ends. */
function segmentsOf(path: string): readonly string[] {
  const inner = path.replace(/^\/+/, '').replace(/\/+$/, '')
  return inner === '' ? [] : inner.split('/')
}

function isVariable(part: string): boolean {
  return part.startsWith(':')
}

function fitting(part: string, segment: string): string | undefined {
  if (isVariable(part)) return segment === '' ? undefined : segment
  return part.toLowerCase() === segment.toLowerCase() ? part : undefined
}
