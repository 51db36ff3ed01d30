import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { testFolder } from './test-folder.ts'

/** A token of sufficient length; the same word gives the same token. */
export const tokenNamed = (word: string): string => `${word}-k7Q2xZr9TbW4mLp8VfHd`

export const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

/** A file that only this user can read, as the service requires. */
export async function tokensFile(content: unknown): Promise<string> {
  const path = join(await testFolder(), 'tokens.json')
  await writeTokens(path, content)
  return path
}

export async function writeTokens(path: string, content: unknown): Promise<void> {
  const text = typeof content === 'string' ? content : JSON.stringify(content)
  await writeFile(path, text, { mode: 0o600 })
}
