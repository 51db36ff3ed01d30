import type { PartitionRow } from '@baton/protocol'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { Attempts } from './attempts.tsx'
import { columnCount } from './column-count.ts'

interface DetailRowProps {
  readonly id: string
  readonly partition: PartitionRow
  /** How high it came out: the rows below stand that much lower. */
  readonly measured: (height: number) => void
}

/** All of a partition's last reason, as it was given, and its attempts. */
export function DetailRow({ id, partition, measured }: DetailRowProps) {
  const { lastReason, history } = partition
  const row = useRef<HTMLTableRowElement>(null)
  useLayoutEffect(() => {
    const element = row.current
    if (element === null) return
    const watch = new ResizeObserver(() => measured(element.offsetHeight))
    watch.observe(element)
    measured(element.offsetHeight)
    return () => watch.disconnect()
  }, [lastReason, history.length])
  return (
    <tr class="detail" id={id} ref={row}>
      <td colSpan={columnCount.value}>
        {lastReason === null ? null : <pre>{lastReason}</pre>}
        <Attempts history={history} />
      </td>
    </tr>
  )
}
