import { ProblemError } from '@baton/client'
import type { Problem } from '@baton/protocol'
import { baseUrl, noteRefusalCode } from '../service/connection.ts'
import type { ApiDocument } from './api-document.ts'
import { inlined } from './inlined.ts'

/** Rejects with a {@link ProblemError} if the service refuses. */
export async function requestDocument(bearer: string | null): Promise<ApiDocument> {
  const headers = bearer === null ? {} : { authorization: `Bearer ${bearer}` }
  const response = await fetch(new URL('openapi.json', baseUrl), { headers })
  if (response.ok) return inlined((await response.json()) as ApiDocument)
  throw new ProblemError((await response.json()) as Problem)
}

export async function readDocument(bearer: string | null): Promise<ApiDocument> {
  try {
    return await requestDocument(bearer)
  } catch (error) {
    if (error instanceof ProblemError) noteRefusalCode(error.code)
    throw error
  }
}
