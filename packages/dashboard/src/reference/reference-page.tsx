import { useEffect, useState } from 'preact/hooks'
import { Empty, Skeleton } from '../parts/empty.tsx'
import { Masthead } from '../parts/masthead.tsx'
import { token, tokenWanted } from '../service/connection.ts'
import { TokenForm } from '../token-form.tsx'
import { type ApiDocument, readDocument, requestDocument, routesOf } from './api-document.ts'
import { Contents } from './contents.tsx'
import { groups } from './groups.ts'
import { OperationView } from './operation-view.tsx'
import { ProblemList } from './problem-list.tsx'

export function ReferencePage() {
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
      <Masthead here="reference" />
      {tokenWanted.value === 'no' ? (
        <Body document={document} />
      ) : (
        <TokenForm
          why={tokenWanted.value}
          purpose="A token of any role shows the reference."
          attempt={requestDocument}
        />
      )}
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

/** The browser jumped before there was anything to jump to. */
function useJumpToFragment(isThere: boolean): void {
  useEffect(() => {
    if (!isThere || location.hash.length < 2) return
    window.document.getElementById(location.hash.slice(1))?.scrollIntoView()
  }, [isThere])
}
