import Type, { type TSchema } from 'typebox'
import { Compile } from 'typebox/schema'
import { descriptorSchema } from './descriptor.ts'
import type { ObjectShape } from './field-faults.ts'
import { DEFAULT_TABLE_FIELD } from './table-field.ts'
import type { UnknownFields } from './unknown-fields.ts'

/** Decides about one descriptor by itself, and knows the shape that explains a refusal. */
export interface DescriptorCheck {
  shape: ObjectShape
  matches: (value: unknown) => value is Record<string, unknown>
}

/** Compiling costs some milliseconds, and a deployment uses one combination. */
const made = new Map<string, DescriptorCheck>()

export function descriptorCheck(tableField: string, unknownFields: UnknownFields): DescriptorCheck {
  const key = `${unknownFields} ${tableField}`
  let check = made.get(key)
  if (check === undefined) {
    check = makeCheck(tableField, unknownFields)
    made.set(key, check)
  }
  return check
}

/**
 * The schema is compiled without its patterns. In one array nearly all task ids and table names are the same text,
 * so their patterns are tried only when the text changes; a partition name is the task id and digits, which reading
 * it will show. For 50,000 descriptors that saves a third of the whole check.
 */
function makeCheck(tableField: string, unknownFields: UnknownFields): DescriptorCheck {
  const { properties, required } = descriptorSchema(tableField)
  const structure = Compile(
    Type.Object(
      Object.fromEntries(
        Object.entries(properties).map(([field, schema]) => [field, withoutPattern(schema)]),
      ),
      { additionalProperties: unknownFields !== 'refuse' },
    ),
  )
  const fields = properties as Record<string, TSchema>
  const taskIdFits = patternTest(fields['taskId'])
  const tableFits = patternTest(fields[tableField])
  return {
    shape: { properties, required, aliases: { [DEFAULT_TABLE_FIELD]: tableField } },
    matches: (value): value is Record<string, unknown> =>
      structure.Check(value) &&
      taskIdFits((value as Record<string, string>)['taskId'] as string) &&
      tableFits((value as Record<string, string>)[tableField] as string),
  }
}

function withoutPattern(schema: TSchema): TSchema {
  const { pattern: _, ...others } = schema as TSchema & { pattern?: unknown }
  return Type.Unsafe(others)
}

/** Remembers the last text that fitted. */
function patternTest(schema: TSchema | undefined): (text: string) => boolean {
  const form = new RegExp((schema as { pattern?: string } | undefined)?.pattern ?? '', 'u')
  let fitting: string | undefined
  return (text) => {
    if (text === fitting) return true
    if (!form.test(text)) return false
    fitting = text
    return true
  }
}
