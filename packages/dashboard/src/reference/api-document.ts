/** The parts of an OpenAPI document that the reference shows. */
export interface Schema {
  readonly type?: string | readonly string[]
  readonly description?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly items?: Schema
  readonly anyOf?: readonly Schema[]
  readonly enum?: readonly string[]
  readonly minimum?: number
  readonly maximum?: number
  readonly maxLength?: number
  readonly default?: unknown
  readonly examples?: readonly unknown[]
  readonly 'x-events'?: Readonly<Record<string, Schema>>
}

export interface Parameter {
  readonly name: string
  readonly in: 'query' | 'path' | 'header'
  readonly required?: boolean
  readonly description?: string
  readonly example?: unknown
  readonly schema: Schema
}

export interface Content {
  readonly schema: Schema
  readonly examples?: Readonly<Record<string, { readonly value?: unknown }>>
}

export type Actor = 'producer' | 'worker' | 'operator' | 'anyone'

export interface Operation {
  readonly operationId: string
  readonly summary: string
  readonly description?: string
  readonly 'x-actor'?: Actor
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: { readonly content: Readonly<Record<string, Content>> }
  readonly responses: Readonly<
    Record<string, { readonly description: string; readonly content?: Readonly<Record<string, Content>> }>
  >
}

interface ProblemExample {
  readonly code: string
  readonly status: number
  readonly title: string
  readonly detail: string
  readonly retryable: boolean
}

export interface ApiDocument {
  readonly info: { readonly title: string; readonly version: string; readonly description: string }
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly examples?: Readonly<Record<string, { readonly value: ProblemExample }>> }
}

export interface Route {
  readonly method: string
  readonly path: string
  readonly operation: Operation
}

export function routesOf(document: ApiDocument, actor: Actor): Route[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, operation]) => (operation['x-actor'] ?? 'anyone') === actor)
      .map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  )
}
