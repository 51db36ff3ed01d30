/** `<version>-<trace id>-<parent id>-<flags>`. Later versions may append more fields. */
const FORM = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/
const ZEROS = /^0+$/

/**
 * Parses a `traceparent` of W3C Trace Context and returns the form to pass on. Returns null for a value that
 * the specification says to ignore. An unknown later version is passed on as version 00, with the only flag
 * of that version.
 */
export function readTraceparent(text: string | undefined): string | null {
  const [, version, traceId = '', parentId = '', flags = '', more] = FORM.exec(text ?? '') ?? []
  if (version === undefined || version === 'ff') return null
  if (ZEROS.test(traceId) || ZEROS.test(parentId)) return null
  if (version !== '00') return `00-${traceId}-${parentId}-0${Number.parseInt(flags, 16) & 1}`
  return more === undefined ? `00-${traceId}-${parentId}-${flags}` : null
}
