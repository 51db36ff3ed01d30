import { MAX_CHECKPOINT_BYTES } from './limits.ts'

export function isCheckpointTooLong(text: string): boolean {
  // A character has at least one byte.
  if (text.length > MAX_CHECKPOINT_BYTES) return true
  let bytes = 0
  for (const character of text) bytes += bytesOf(character.codePointAt(0) ?? 0)
  return bytes > MAX_CHECKPOINT_BYTES
}

/** In UTF-8. */
function bytesOf(codePoint: number): number {
  if (codePoint < 0x80) return 1
  if (codePoint < 0x800) return 2
  return codePoint < 0x10000 ? 3 : 4
}
