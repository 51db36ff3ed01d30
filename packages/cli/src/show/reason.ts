import { beginning } from './fitting.ts'
import { shown } from './table.ts'

/**
 * Why a partition failed, on one line. It is mostly the end of what a program said last: where there is no room for
 * all of it, its last line says most.
 */
export function reasonText(reason: string, width: number): string {
  const lines = reason
    .split(/[\r\n]+/)
    .map((line) => shown(line.trim()))
    .filter((line) => line !== '')
  const [last = ''] = lines.slice(-1)
  const whole = lines.join(' · ')
  return beginning(whole, width) === whole ? whole : beginning(lines.length > 1 ? `… ${last}` : last, width)
}
