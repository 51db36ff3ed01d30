import { useEffect, useState } from 'preact/hooks'
import { type ApiDocument, routesOf } from './api-document.ts'
import { groups } from './groups.ts'

/** On a phone the list would fill the first screen: there it is folded until it is wanted. */
const narrow = matchMedia('(max-width: 640px)')

export function Contents({ document }: { document: ApiDocument }) {
  const [isOpen, setOpen] = useState(!narrow.matches)
  useEffect(() => {
    const follow = () => setOpen(!narrow.matches)
    narrow.addEventListener('change', follow)
    // Whoever has chosen wants to see it.
    addEventListener('hashchange', follow)
    return () => {
      narrow.removeEventListener('change', follow)
      removeEventListener('hashchange', follow)
    }
  }, [])
  return (
    <nav class="contents" aria-label="Operations">
      <details open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>Operations</summary>
        <div class="contents-groups">
          {groups.map(({ actor, title }) => (
            <div key={actor}>
              <p class="contents-title">{title}</p>
              <ul>
                {routesOf(document, actor).map(({ method, path, operation }) => (
                  <li key={operation.operationId}>
                    <a href={`#${operation.operationId}`}>
                      <span class={`method ${method.toLowerCase()}`}>{method}</span>
                      <span class="cut">{path}</span>
                    </a>
                  </li>
                ))}
              </ul>
            </div>
          ))}
          <p class="contents-title">
            <a href="#problems">Problems</a>
          </p>
        </div>
      </details>
    </nav>
  )
}
