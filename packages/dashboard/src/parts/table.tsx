import type { ComponentChildren } from 'preact'

/** The words of a column, and the class that aligns or hides it. */
type Column = string | readonly [words: ComponentChildren, kind: string]

export function Head({ columns }: { columns: readonly Column[] }) {
  return (
    <thead>
      <tr>
        {columns.map((column, place) => {
          const [words, kind] = typeof column === 'string' ? [column] : column
          return (
            <th key={place} scope="col" class={kind}>
              {words}
            </th>
          )
        })}
      </tr>
    </thead>
  )
}

/** The heading of a column of buttons. */
export const unseen = (words: string) => <span class="visually-hidden">{words}</span>

/** A name of any length. Names differ at their end, so the start is cut. */
export function Name({ text, href }: { text: string; href?: string }) {
  const words = <bdi>{text}</bdi>
  return href === undefined ? (
    <span class="cut-start" title={text}>
      {words}
    </span>
  ) : (
    <a class="cut-start" href={href} title={text}>
      {words}
    </a>
  )
}
