import type { FastifyServerOptions } from 'fastify'

type SchemaController = NonNullable<FastifyServerOptions['schemaController']>

/**
 * The schemas of routes describe: what they demand is checked by the protocol's own functions, whose words a person
 * can act on, and answers are built to fit. Saying so to Fastify spares each start the loading of two compilers.
 */
export const descriptiveSchemas = {
  compilersFactory: {
    buildValidator: () => () => undefined,
    buildSerializer: () => () => (answer: unknown) => JSON.stringify(answer),
  },
  // Fastify's type knows no other validators than those of ajv.
} as unknown as SchemaController
