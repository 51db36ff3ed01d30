/** `<version>-<trace id>-<parent id>-<flags>`; later versions may have more behind it. */
const FORM = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/
const ZEROS = /^0+$/

/**
 * A `traceparent` of W3C Trace Context as it is passed on, or null for one that the specification says to ignore. One of a
 * version that is not known yet is passed on as version 00, with the flag that this version has.
 */
export function readTraceparent(text: string | undefined): string | null {
  const [, version, traceId = '', parentId = '', flags = '', more] = FORM.exec(text ?? '') ?? []
  if (version === undefined || version === 'ff') return null
  if (ZEROS.test(traceId) || ZEROS.test(parentId)) return null
  if (version !== '00') return `00-${traceId}-${parentId}-0${Number.parseInt(flags, 16) & 1}`
  return more === undefined ? `00-${traceId}-${parentId}-${flags}` : null
}
