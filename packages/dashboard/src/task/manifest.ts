import { ProblemError } from '@baton/client'
import type { Problem } from '@baton/protocol'

/** The whole of it: where it breaks off, it rejects. */
export async function readManifest(url: URL, bearer: string): Promise<Blob> {
  const response = await fetch(url, { headers: { authorization: `Bearer ${bearer}` }, cache: 'no-store' })
  if (response.ok) return response.blob()
  throw new ProblemError((await response.json()) as Problem)
}
