import { baseUrl, explained, token } from '../service/connection.ts'
import { say } from './control.tsx'

/** Copies the request that a view reads, or its answer, to go on with in a terminal or a ticket. */
export function CopyAs({ path, method = 'GET' }: { path: string; method?: string }) {
  const url = new URL(path, baseUrl)
  const copy = async (what: string, text: () => Promise<string> | string) => {
    try {
      await navigator.clipboard.writeText(await text())
      say('said', `Copied as ${what}`)
    } catch (error) {
      say('failed', `It could not be copied. ${explained(error)}`)
    }
  }
  return (
    <>
      <button type="button" class="quiet-button" onClick={() => void copy('curl', () => curlOf(url, method))}>
        Copy as curl
      </button>
      <button type="button" class="quiet-button" onClick={() => void copy('JSON', () => answerOf(url))}>
        Copy as JSON
      </button>
    </>
  )
}

/** With a placeholder for the token, because the command may end up in a ticket. */
function curlOf(url: URL, method: string): string {
  const quoted = `'${url.href.replaceAll("'", "'\\''")}'`
  const request = method === 'GET' ? `curl ${quoted}` : `curl -X ${method} ${quoted}`
  return token.peek() === null ? request : `${request} -H "Authorization: Bearer $BATON_TOKEN"`
}

async function answerOf(url: URL): Promise<string> {
  const bearer = token.peek()
  const headers = bearer === null ? {} : { authorization: `Bearer ${bearer}` }
  const answer: unknown = await (await fetch(url, { headers, cache: 'no-store' })).json()
  return JSON.stringify(answer, null, 2)
}
