import type { ApiDocument } from './api-document.ts'

/** Every problem that there is, with an occurrence of it. */
export function ProblemList({ document }: { document: ApiDocument }) {
  const problems = Object.values(document.components.examples ?? {}).map(({ value }) => value)
  return (
    <section aria-labelledby="problems">
      <header class="actor-head">
        <h2 id="problems">Problems</h2>
        <p class="muted">
          A request that cannot be carried out is answered with <code>application/problem+json</code> (RFC
          9457).
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
