import { StoreRefused } from '../handoff/store.ts'

/** Of stores and exports. Until the first release it rises without a step: earlier data is refused. */
export const SCHEMA_VERSION = 18

/** A version of the schema and the way to it. */
export interface Schema {
  readonly version: number
  /** Creates all tables. */
  readonly sql: string
  /** By version: the SQL that leads from it to the next one. */
  readonly steps: ReadonlyMap<number, string>
}

/** A store as it is named in errors. */
export interface NamedStore {
  readonly name: string
  /** How to use another one. */
  readonly another: string
}

/** The SQL for each version from the one after `found` on. A store without data has version 0. */
export function stepsTo(schema: Schema, found: number, { name, another }: NamedStore): string[] {
  if (found === 0) return [schema.sql]
  if (found > schema.version)
    throw new StoreRefused(
      `${name} has schema version ${found}, and this program supports versions up to ${schema.version}; start a version of Baton that supports version ${found}`,
    )
  const steps: string[] = []
  for (let at = found; at < schema.version; at += 1) {
    const step = schema.steps.get(at)
    if (step === undefined) throw unreleased(name, another)
    steps.push(step)
  }
  return steps
}

export const unreleased = (name: string, remedy: string): StoreRefused =>
  new StoreRefused(
    `${name} was written by a version of Baton from before the first release, which this program cannot read; ${remedy}`,
  )

/** The tools read the current version only, and upgrade nothing. */
export function refuseOtherVersion(name: string, found: number): void {
  if (found === SCHEMA_VERSION) return
  const remedy =
    found > SCHEMA_VERSION
      ? `use a version of Baton that supports schema version ${found}`
      : 'start this version of Baton with it once to upgrade it'
  throw new StoreRefused(`${name} has schema version ${found}, not ${SCHEMA_VERSION}; ${remedy}`)
}
