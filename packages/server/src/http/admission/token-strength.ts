/** 128 random bits take 22 characters of base64url, or 32 hex digits. */
const SHORTEST_TOKEN = 22
/** A random token of that length has more different characters than this but for one in many millions. */
const FEWEST_DIFFERENT = 8

/** What is weak about a token that stands in the file in clear; undefined when nothing is. Never quotes it. */
export function weakness(token: string): string | undefined {
  if (token.length < SHORTEST_TOKEN)
    return `is shorter than ${SHORTEST_TOKEN} characters, which can be guessed`
  if (new Set(token).size < FEWEST_DIFFERENT)
    return `has fewer than ${FEWEST_DIFFERENT} different characters, which can be guessed`
  return undefined
}
