import { Copyable } from '../parts/panel.tsx'
import { baseUrl, token } from '../service/connection.ts'
import type { Content, Operation, Parameter, Route, Schema } from './api-document.ts'
import { commandOf, sampleOf, titled } from './sample.ts'

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
        {description === undefined ? null : <p class="operation-description">{prose(description)}</p>}
        <ParameterTable parameters={parameters} />
        <BodyFields title="Body" content={requestContent} />
        <BodyFields title="Answer" content={answerContent} note={responses['200']?.description} />
        <Problems content={responses['default']?.content?.['application/problem+json']} />
      </div>
      <div class="operation-examples">
        <Copyable label={`Example of ${operationId}`} text={commandFor(route)} />
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

/** Descriptions are CommonMark; ours use no more of it than code between backticks. */
function prose(text: string) {
  return text.split('`').map((part, at) => (at % 2 === 1 ? <code key={at}>{part}</code> : part))
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
      {note === undefined ? null : <p class="muted">{prose(note)}</p>}
      {events === undefined ? (
        <FieldTable schema={schema} />
      ) : (
        <ul class="events">
          {Object.entries(events).map(([name, data]) => (
            <li key={name}>
              <code>{name}</code> {prose(data.description ?? '')}
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

/** With the URL of this service. */
function commandFor(route: Route): string {
  const sample = sampleOf(route, `${baseUrl.origin}${baseUrl.pathname.replace(/\/$/, '')}`)
  const isSigned = token.value !== null && takesToken(route.operation)
  const headers = isSigned
    ? [['Authorization', 'Bearer <token>'] as const, ...sample.headers]
    : sample.headers
  return commandOf({ ...sample, headers })
}

/** Health probes need no token. */
function takesToken({ responses }: Operation): boolean {
  return 'token_missing' in (responses['default']?.content?.['application/problem+json']?.examples ?? {})
}

/** Deeper fields are left to the example. */
const DEEPEST = 3

function ParameterTable({ parameters }: { parameters: readonly Parameter[] }) {
  if (parameters.length === 0) return null
  return (
    <>
      <h4>Parameters</h4>
      <Fields
        label="Parameters"
        rows={parameters.map(({ name, in: place, required, description, schema }) => ({
          name: place === 'header' ? titled(name) : name,
          depth: 0,
          type: `${place}, ${typeOf(schema)}`,
          required: required ?? false,
          description: description ?? schema.description ?? '',
        }))}
      />
    </>
  )
}

function FieldTable({ schema }: { schema: Schema }) {
  return <Fields label="Fields" rows={[...rowsOf(schema, 0)]} />
}

interface Row {
  readonly name: string
  readonly depth: number
  readonly type: string
  readonly required: boolean
  readonly description: string
}

function Fields({ label, rows }: { label: string; rows: readonly Row[] }) {
  return (
    <table class="fields" aria-label={label}>
      <tbody>
        {rows.map(({ name, depth, type, required, description }, at) => (
          <tr key={at}>
            <th scope="row" class={`depth-${depth}`}>
              <code>{name}</code>
              {required ? null : <span class="tag">optional</span>}
            </th>
            <td>
              <span class="field-type">{type}</span>
              {prose(description)}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

function* rowsOf(schema: Schema, depth: number): Generator<Row> {
  const { properties, required = [], items, anyOf } = schema
  if (items !== undefined && properties === undefined) {
    if (items.properties === undefined) {
      yield { name: '[ ]', depth, type: typeOf(items), required: true, description: items.description ?? '' }
    } else yield* rowsOf(items, depth)
    return
  }
  const alternative = anyOf?.find((one) => one.properties !== undefined)
  if (alternative !== undefined) yield* rowsOf(alternative, depth)
  for (const [name, field] of Object.entries(properties ?? {})) {
    yield {
      name,
      depth,
      type: typeOf(field),
      required: required.includes(name),
      description: field.description ?? '',
    }
    if (depth + 1 < DEEPEST) yield* nestedOf(field, depth + 1)
  }
}

function* nestedOf(field: Schema, depth: number): Generator<Row> {
  const isNested = field.properties ?? field.items?.properties ?? field.anyOf?.some((one) => one.properties)
  if (isNested) yield* rowsOf(field, depth)
}

function typeOf(schema: Schema): string {
  if (schema.enum !== undefined) return schema.enum.join(' | ')
  if (schema.anyOf !== undefined) return schema.anyOf.map(typeOf).join(' or ')
  if (schema.type === 'array')
    return `array of ${schema.items === undefined ? 'values' : plural(typeOf(schema.items))}`
  if (Array.isArray(schema.type)) return schema.type.join(' or ')
  return String(schema.type ?? 'any')
}

function plural(type: string): string {
  return /^\w+$/.test(type) ? `${type}s` : type
}
