import { brokenRule } from './field-faults.ts'
import { MAX_CHOSEN, MAX_TABLE_NAME_LENGTH, MAX_TASK_ID_LENGTH } from './limits.ts'
import { qualifiedTableName, taskIdText } from './text-form.ts'
import { describeValue } from './violation.ts'

/** Kept apart from the schemas: clients need these rules without the schema library. */
export const chosenKeywords = {
  table: {
    type: 'string',
    minLength: 1,
    maxLength: MAX_TABLE_NAME_LENGTH,
    pattern: qualifiedTableName.pattern,
  },
  task: { type: 'string', minLength: 1, maxLength: MAX_TASK_ID_LENGTH, pattern: taskIdText.pattern },
} as const

/** Checks the tables or tasks that a request names. The detail is a sentence about the parameter. */
export function checkChosen(
  kind: 'table' | 'task',
  names: readonly string[],
): { ok: true; names: readonly string[] } | { ok: false; detail: string } {
  const distinct = [...new Set(names)]
  if (distinct.length > MAX_CHOSEN)
    return {
      ok: false,
      detail: `at most ${MAX_CHOSEN} ${kind}s can be named at once, and these are ${distinct.length}`,
    }
  for (const name of distinct) {
    const rule = brokenRule(chosenKeywords[kind], name)
    if (rule !== undefined) return { ok: false, detail: `${kind} ${rule}, got ${describeValue(name)}` }
  }
  return { ok: true, names: distinct }
}
