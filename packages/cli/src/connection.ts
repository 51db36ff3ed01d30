import { BatonClient, type BatonClientOptions } from '@baton/client'
import type { Arguments } from './arguments.ts'
import type { Flags } from './command.ts'
import { UsageError } from './usage-error.ts'

const DEFAULT_URL = 'http://127.0.0.1:7070'

/** Where the service is, and who asks. */
export const placeFlags = {
  url: {
    kind: 'text',
    placeholder: 'URL',
    variable: 'BATON_URL',
    otherwise: DEFAULT_URL,
    description: 'base URL of the service',
  },
  token: {
    kind: 'text',
    placeholder: 'TOKEN',
    variable: 'BATON_TOKEN',
    description: 'token of the service; better given by the variable, which other users cannot see',
  },
  'instance-id': {
    kind: 'text',
    placeholder: 'NAME',
    variable: 'BATON_INSTANCE_ID',
    description: 'the name under which this client is shown',
  },
  'table-field': {
    kind: 'text',
    placeholder: 'NAME',
    variable: 'BATON_TABLE_FIELD',
    otherwise: 'computeTableName',
    description: "the wire's name for the table field, as the service has it",
  },
} satisfies Flags

/** The flags of every command that asks a service something and ends. */
export const connectionFlags = {
  ...placeFlags,
  timeout: {
    kind: 'number',
    placeholder: 'SECONDS',
    otherwise: '30',
    fractions: true,
    description: 'how long to go on trying while the service is away; 0 tries once',
  },
  json: { kind: 'switch', description: 'answer in JSON, errors too' },
} satisfies Flags

export function connect(given: Arguments, more: Partial<BatonClientOptions> = {}): BatonClient {
  const url = given.text('url') ?? DEFAULT_URL
  const token = given.text('token')
  const instanceId = given.text('instance-id')
  const tableField = given.text('table-field')
  const retryForSeconds = given.number('timeout')
  try {
    return new BatonClient({
      url,
      ...(token === undefined ? {} : { token }),
      ...(instanceId === undefined ? {} : { instanceId }),
      ...(tableField === undefined ? {} : { tableField }),
      ...(retryForSeconds === undefined ? {} : { retryForSeconds }),
      ...more,
    })
  } catch (error) {
    throw new UsageError(`--url: ${(error as Error).message}`)
  }
}

/** Where the service is, for programs that are started. */
export function urlOf(given: Arguments): string {
  return given.text('url') ?? DEFAULT_URL
}
