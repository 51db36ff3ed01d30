import { baseUrl, token } from '../service/connection.ts'

const fixedFields = ['taskId', 'partition_name', 'record_count', 'priorityLevel']

interface CallBackPart {
  readonly paths: Record<
    string,
    {
      post?: { requestBody?: { content?: Record<string, { schema?: { items?: { properties?: object } } }> } }
    }
  >
}

/** How this deployment names the field of the compute table; its API document says so. */
export async function tableFieldOf(): Promise<string> {
  const headers = token.peek() === null ? {} : { authorization: `Bearer ${token.peek()}` }
  const response = await fetch(new URL('openapi.json', baseUrl), { headers })
  const { paths } = (await response.json()) as CallBackPart
  const [, callBack] = Object.entries(paths).find(([path]) => path.endsWith('/call-back')) ?? []
  const fields = callBack?.post?.requestBody?.content?.['application/json']?.schema?.items?.properties ?? {}
  const own = Object.keys(fields).find((field) => !fixedFields.includes(field))
  if (own === undefined) throw new Error('the document does not describe a call-back')
  return own
}
