import { useLayoutEffect, useRef } from 'preact/hooks'
import { columnCount } from './column-count.ts'

interface ReasonRowProps {
  readonly id: string
  readonly text: string
  /** How high it came out: the rows below stand that much lower. */
  readonly measured: (height: number) => void
}

/** All of a reason, as it was given. */
export function ReasonRow({ id, text, measured }: ReasonRowProps) {
  const row = useRef<HTMLTableRowElement>(null)
  useLayoutEffect(() => {
    const element = row.current
    if (element === null) return
    const watch = new ResizeObserver(() => measured(element.offsetHeight))
    watch.observe(element)
    measured(element.offsetHeight)
    return () => watch.disconnect()
  }, [text])
  return (
    <tr class="detail" id={id} ref={row}>
      <td colSpan={columnCount.value}>
        <pre>{text}</pre>
      </td>
    </tr>
  )
}
