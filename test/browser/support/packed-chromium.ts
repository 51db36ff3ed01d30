import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import packed from '@sparticuz/chromium'

/** The package has a browser for this platform only. */
export const isPackedForThisMachine = process.platform === 'linux' && process.arch === 'x64'

/**
 * The package unpacks itself into the temporary folder and reuses any files there. Each version therefore
 * gets its own folder, which is renamed to its final name only when it is complete, since test files run in
 * parallel.
 */
export async function unpackedChromium(): Promise<string> {
  const folder = join(tmpdir(), `baton-chromium-${packedVersion()}`)
  if (!existsSync(folder)) {
    const being = mkdtempSync(`${folder}-`)
    await unpackInto(being)
    try {
      renameSync(being, folder)
    } catch {
      rmSync(being, { recursive: true, force: true })
    }
  }
  return join(folder, 'chromium')
}

async function unpackInto(folder: string): Promise<void> {
  const usual = process.env['TMPDIR']
  process.env['TMPDIR'] = folder
  mkdirSync(folder, { recursive: true })
  try {
    await packed.executablePath()
  } finally {
    if (usual === undefined) delete process.env['TMPDIR']
    else process.env['TMPDIR'] = usual
  }
}

function packedVersion(): string {
  const entry = createRequire(import.meta.url).resolve('@sparticuz/chromium')
  const { version } = JSON.parse(readFileSync(join(dirname(entry), '..', 'package.json'), 'utf8'))
  return version
}
