/** Reasons are often the end of what a program wrote: what it died of stands last. */
export function lastLine(text: string): string {
  return (
    text
      .split(/\r?\n/)
      .findLast((line) => line.trim() !== '')
      ?.trim() ?? text
  )
}
