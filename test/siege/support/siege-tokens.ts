import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** Of honest clients, and of a producer that wants more than its share. */
type Holder = 'honest' | 'bad'

export const siegeToken = (holder: Holder): string => `${holder}-k7Q2xZr9TbW4mLp8VfHd`

/** Writes a tokens file, as an operator would, and returns its path. */
export async function siegeTokens(folder: string): Promise<string> {
  const tokens = [
    { name: 'honest', token: siegeToken('honest'), roles: ['producer', 'worker'] },
    { name: 'bad', token: siegeToken('bad'), roles: ['producer'], maxOpenTasks: 5 },
  ]
  const path = join(folder, 'tokens.json')
  await writeFile(path, JSON.stringify({ tokens }), { mode: 0o600 })
  return path
}
