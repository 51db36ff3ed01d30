import { render } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { Search } from '../parts/filters.tsx'
import { Masthead, SkipLink, TokenForm } from '../parts/frame.tsx'
import { Keys } from '../parts/keys.tsx'
import { Empty, Skeleton } from '../parts/panel.tsx'
import { Name } from '../parts/table.tsx'
import { token, tokenWanted } from '../service/connection.ts'
import { type Actor, type ApiDocument, type Route, routesOf } from './api-document.ts'
import { OperationView } from './operation-view.tsx'
import { readDocument, requestDocument } from './read-document.ts'

import '../style/index.css'
import '../style/reference.css'

/** The users of the operations, in the order in which a task meets them. */
const groups: readonly { readonly actor: Actor; readonly title: string; readonly text: string }[] = [
  { actor: 'producer', title: 'Producer', text: 'Computes a task and calls its partitions back.' },
  { actor: 'worker', title: 'Worker', text: 'Pulls partitions, renews leases and settles them.' },
  { actor: 'operator', title: 'Operator', text: 'Monitors tasks and intervenes if something is stuck.' },
  { actor: 'anyone', title: 'Anyone', text: 'Instances, and the health of the service.' },
]

/** On a phone the list would fill the screen, so it starts folded. */
const narrow = matchMedia('(max-width: 640px)')

function Contents({ document }: { document: ApiDocument }) {
  const [isOpen, setOpen] = useState(!narrow.matches)
  const [search, setSearch] = useState('')
  const isFound = ({ method, path, operation: { summary } }: Route) =>
    `${method} ${path} ${summary}`.toLowerCase().includes(search.toLowerCase())
  useEffect(() => {
    const follow = () => setOpen(!narrow.matches)
    narrow.addEventListener('change', follow)
    // Fold the list after a selection, so that the selected operation is visible.
    addEventListener('hashchange', follow)
    return () => {
      narrow.removeEventListener('change', follow)
      removeEventListener('hashchange', follow)
    }
  }, [])
  return (
    <nav class="contents" aria-label="Operations">
      <Search
        label="Search operations"
        placeholder="Search operations"
        value={search}
        search={(text) => {
          setSearch(text)
          setOpen(true)
        }}
      />
      <details open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>Operations</summary>
        <div class="contents-groups">
          {groups.map(({ actor, title }) => {
            const found = routesOf(document, actor).filter(isFound)
            if (found.length === 0) return null
            return (
              <div key={actor}>
                <p class="contents-title">{title}</p>
                <ul>
                  {found.map(({ method, path, operation }) => (
                    <li key={operation.operationId}>
                      <a href={`#${operation.operationId}`} title={operation.summary}>
                        <span class={`method ${method.toLowerCase()}`}>{method}</span>
                        <Name text={path} />
                      </a>
                    </li>
                  ))}
                </ul>
              </div>
            )
          })}
          <p class="contents-title">
            <a href="#problems">Problems</a>
          </p>
        </div>
      </details>
    </nav>
  )
}

/** Every problem of the API, with an example. */
function ProblemList({ document }: { document: ApiDocument }) {
  const problems = Object.values(document.components.examples ?? {}).map(({ value }) => value)
  return (
    <section aria-labelledby="problems">
      <header class="actor-head">
        <h2 id="problems">Problems</h2>
        <p class="muted">
          A request that fails is answered with <code>application/problem+json</code> (RFC 9457).
        </p>
      </header>
      <div class="panel">
        <ul class="problems">
          {problems.map(({ code, status, title, detail, retryable }) => (
            <li key={code} id={`problem-${code}`}>
              <span class="number problem-status">{status}</span>
              <div>
                <p>
                  <code>{code}</code> {title}
                  {retryable ? <span class="tag">may succeed later</span> : null}
                </p>
                <p class="muted">{detail}</p>
              </div>
            </li>
          ))}
        </ul>
      </div>
    </section>
  )
}

function ReferencePage() {
  const [document, setDocument] = useState<ApiDocument | 'loading' | 'failed'>('loading')
  const given = token.value
  useEffect(() => {
    readDocument(given).then(
      (read) => setDocument(read),
      () => setDocument('failed'),
    )
  }, [given])
  return (
    <>
      <SkipLink />
      <Masthead here="reference" />
      {tokenWanted.value === 'no' ? (
        <Body document={document} />
      ) : (
        <TokenForm
          why={tokenWanted.value}
          purpose="A token with any role can read the reference."
          attempt={requestDocument}
        />
      )}
      <Keys />
    </>
  )
}

function Body({ document }: { document: ApiDocument | 'loading' | 'failed' }) {
  useJumpToFragment(typeof document === 'object')
  if (typeof document !== 'object') {
    return (
      <main class="page" id="content">
        <h1 class="visually-hidden">API reference</h1>
        {document === 'loading' ? (
          <Skeleton lines={6} />
        ) : (
          <Empty title="The API document could not be read." />
        )}
      </main>
    )
  }
  return (
    <main class="page reference" id="content">
      <Contents document={document} />
      <div class="reference-body">
        <header class="reference-head">
          <h1>API reference</h1>
          <p>
            {document.info.description} Version {document.info.version}, as{' '}
            <a href="openapi.json">OpenAPI 3.1</a>.
          </p>
        </header>
        {groups.map(({ actor, title, text }) => (
          <section key={actor} aria-labelledby={`actor-${actor}`}>
            <header class="actor-head">
              <h2 id={`actor-${actor}`}>{title}</h2>
              <p class="muted">{text}</p>
            </header>
            {routesOf(document, actor).map((route) => (
              <OperationView key={route.operation.operationId} route={route} />
            ))}
          </section>
        ))}
        <ProblemList document={document} />
      </div>
    </main>
  )
}

/**
 * The browser handled the fragment before the document was loaded, or before the list was folded, so scroll to it
 * again.
 */
function useJumpToFragment(isThere: boolean): void {
  useEffect(() => {
    if (!isThere) return
    const jump = () => window.document.getElementById(location.hash.slice(1))?.scrollIntoView()
    const jumpOnceFolded = () => requestAnimationFrame(jump)
    jump()
    addEventListener('hashchange', jumpOnceFolded)
    return () => removeEventListener('hashchange', jumpOnceFolded)
  }, [isThere])
}

const root = document.getElementById('page')
if (root !== null) {
  root.replaceChildren()
  render(<ReferencePage />, root)
}
