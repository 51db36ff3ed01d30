import { existsSync, mkdtempSync, renameSync } from 'node:fs'
import packed from '@sparticuz/chromium'

// Unpacks the browser into the folder that is named, under a lock. The package unpacks itself into the temporary
// folder and reuses any files there, so the folder gets its name only when it is complete.
const [folder = ''] = process.argv.slice(2)
if (!existsSync(folder)) {
  const being = mkdtempSync(`${folder}-`)
  process.env['TMPDIR'] = being
  await packed.executablePath()
  renameSync(being, folder)
}
