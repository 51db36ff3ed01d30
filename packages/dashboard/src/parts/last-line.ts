/** A reason is often the end of a program's output, where the last line names the error. */
export function lastLine(text: string): string {
  return (
    text
      .split(/\r?\n/)
      .findLast((line) => line.trim() !== '')
      ?.trim() ?? text
  )
}
