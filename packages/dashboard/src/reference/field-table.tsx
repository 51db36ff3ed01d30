import type { Parameter, Schema } from './api-document.ts'
import { titled } from './command.ts'

/** Deeper fields are left to the example. */
const DEEPEST = 3

export function ParameterTable({ parameters }: { parameters: readonly Parameter[] }) {
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

export function FieldTable({ schema }: { schema: Schema }) {
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
              {description}
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
