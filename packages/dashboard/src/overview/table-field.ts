import { baseUrl, token } from '../service/connection.ts'

const fixedFields = ['taskId', 'partition_name', 'record_count', 'priorityLevel']

interface DescriptorPart {
  readonly components?: { readonly schemas?: { readonly PartitionDescriptor?: { properties?: object } } }
}

/** The name of the table field in this deployment, from its API document. */
export async function tableFieldOf(): Promise<string> {
  const headers = token.peek() === null ? {} : { authorization: `Bearer ${token.peek()}` }
  const response = await fetch(new URL('openapi.json', baseUrl), { headers })
  const { components } = (await response.json()) as DescriptorPart
  const fields = components?.schemas?.PartitionDescriptor?.properties ?? {}
  const own = Object.keys(fields).find((field) => !fixedFields.includes(field))
  if (own === undefined) throw new Error('the document does not describe a partition')
  return own
}
