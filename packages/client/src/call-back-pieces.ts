import { jsonText } from './json-text.ts'

/** A run of descriptors that goes into one request. */
export interface Piece {
  /** Position of its first descriptor in the whole. */
  readonly offset: number
  readonly descriptors: readonly unknown[]
  /** The same as JSON, one text each. */
  readonly texts: readonly string[]
}

export interface PieceLimits {
  readonly descriptors: number
  readonly levels: number
  readonly bytes: number
}

/** Cuts what comes into pieces that keep all limits; a descriptor above the limit goes alone. */
export async function* piecesOf(
  source: Iterable<unknown> | AsyncIterable<unknown>,
  limits: PieceLimits,
): AsyncGenerator<Piece, void, undefined> {
  let offset = 0
  let bytes = 0
  let descriptors: unknown[] = []
  let texts: string[] = []
  const levels = new Set<unknown>()
  for await (const descriptor of source) {
    const text = jsonText(descriptor, `descriptor /${offset + texts.length}`)
    const size = byteLength(text) + 1
    const level = levelOf(descriptor)
    const isFull =
      texts.length >= limits.descriptors ||
      bytes + size > limits.bytes ||
      (levels.size >= limits.levels && !levels.has(level))
    if (texts.length > 0 && isFull) {
      yield { offset, descriptors, texts }
      offset += texts.length
      bytes = 0
      descriptors = []
      texts = []
      levels.clear()
    }
    levels.add(level)
    descriptors.push(descriptor)
    texts.push(text)
    bytes += size
  }
  if (texts.length > 0) yield { offset, descriptors, texts }
}

/** Two pieces of half the size, for a service that takes less than was thought. */
export function halves({ offset, descriptors, texts }: Piece): readonly [Piece, Piece] {
  const middle = Math.ceil(texts.length / 2)
  return [
    { offset, descriptors: descriptors.slice(0, middle), texts: texts.slice(0, middle) },
    { offset: offset + middle, descriptors: descriptors.slice(middle), texts: texts.slice(middle) },
  ]
}

/** What is no descriptor is for the check to judge. */
function levelOf(descriptor: unknown): unknown {
  return (descriptor as { priorityLevel?: unknown } | null | undefined)?.priorityLevel
}

const encoder = new TextEncoder()

/** Most descriptors are plain ASCII, where length and size are the same and nothing needs encoding. */
function byteLength(text: string): number {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the whole ASCII range is meant
  return /^[\x00-\x7f]*$/.test(text) ? text.length : encoder.encode(text).byteLength
}
