import { Copyable } from '../parts/copyable.tsx'
import type { Content, Route, Schema } from './api-document.ts'
import { commandOf } from './command.ts'
import { FieldTable, ParameterTable } from './field-table.tsx'

/** One operation: its parameters and answers on the left, an example on the right. */
export function OperationView({ route }: { route: Route }) {
  const { method, path, operation } = route
  const { operationId, summary, description, parameters = [], requestBody, responses } = operation
  const [requestContent] = Object.values(requestBody?.content ?? {})
  const [[mediaType, answerContent] = []] = [Object.entries(responses['200']?.content ?? {})[0]]
  const answer = exampleOf(answerContent)
  return (
    <article class="panel operation" id={operationId} aria-labelledby={`${operationId}-title`}>
      <div class="operation-text">
        <p class="operation-path">
          <span class={`method ${method.toLowerCase()}`}>{method}</span>
          <code>{path}</code>
        </p>
        <h3 id={`${operationId}-title`}>{summary}</h3>
        {description === undefined ? null : <p class="operation-description">{description}</p>}
        <ParameterTable parameters={parameters} />
        <BodyFields title="Body" content={requestContent} />
        <BodyFields title="Answer" content={answerContent} note={responses['200']?.description} />
        <Problems content={responses['default']?.content?.['application/problem+json']} />
      </div>
      <div class="operation-examples">
        <Copyable label={`Example of ${operationId}`} text={commandOf(route)} />
        {answer === undefined ? null : (
          <>
            <p class="muted">200 · {mediaType}</p>
            <Copyable
              label={`Answer of ${operationId}`}
              text={typeof answer === 'string' ? answer.trimEnd() : JSON.stringify(answer, null, 2)}
            />
          </>
        )}
      </div>
    </article>
  )
}

interface BodyFieldsProps {
  readonly title: string
  readonly content: Content | undefined
  readonly note?: string | undefined
}

function BodyFields({ title, content, note }: BodyFieldsProps) {
  if (content === undefined) return null
  const { schema } = content
  const events = schema['x-events']
  if (events === undefined && isWithoutFields(schema)) return null
  return (
    <>
      <h4>{title}</h4>
      {note === undefined ? null : <p class="muted">{note}</p>}
      {events === undefined ? (
        <FieldTable schema={schema} />
      ) : (
        <ul class="events">
          {Object.entries(events).map(([name, data]) => (
            <li key={name}>
              <code>{name}</code> {data.description}
            </li>
          ))}
        </ul>
      )}
    </>
  )
}

function Problems({ content }: { content: Content | undefined }) {
  const codes = Object.keys(content?.examples ?? {})
  if (codes.length === 0) return null
  return (
    <>
      <h4>Problems</h4>
      <p class="codes">
        {codes.map((code) => (
          <a key={code} href={`#problem-${code}`}>
            {code}
          </a>
        ))}
      </p>
    </>
  )
}

function exampleOf(content: Content | undefined): unknown {
  return Object.values(content?.examples ?? {})[0]?.value
}

function isWithoutFields({ type, properties }: Schema): boolean {
  return type === 'object' && Object.keys(properties ?? {}).length === 0
}
