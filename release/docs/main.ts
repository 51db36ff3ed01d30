// Writes the generated parts of docs/*.md: npm run docs.
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { root } from '../packages.ts'
import { withBlocks } from './blocks.ts'

for (const path of globSync('docs/*.md', { cwd: root })) {
  const page = readFileSync(root + path, 'utf8')
  const updated = await withBlocks(page)
  if (updated === page) continue
  writeFileSync(root + path, updated)
  console.log(`${path} was updated`)
}
