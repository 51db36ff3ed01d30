import packed from '@sparticuz/chromium'
import { type Browser, chromium } from 'playwright-core'
import { installedChromium } from './installed-chromium.ts'
import { isPackedForThisMachine, unpackedChromium } from './packed-chromium.ts'

/**
 * Drops the bundled arguments that disable the web's security rules, which are under test here, and those
 * that run the browser in a single process, where closing a page ends the browser.
 */
const unwanted =
  /single-process|no-zygote|disable-web-security|insecure-content|site-isolation|IsolateOrigins/

/** Draws pages without an emulated graphics card, which would be much slower. */
packed.setGraphicsMode = false

/** Host names that are this machine, to the browser. */
export const OTHER_NAMES = ['baton.internal', 'elsewhere.example'] as const

export async function launchChromium(): Promise<Browser> {
  const names = OTHER_NAMES.map((name) => `MAP ${name} 127.0.0.1`)
  return chromium.launch({
    args: [
      ...packed.args.filter((argument) => !unwanted.test(argument)),
      `--host-resolver-rules=${names.join(', ')}`,
    ],
    executablePath: await (isPackedForThisMachine ? unpackedChromium() : installedChromium()),
    headless: true,
  })
}

let shared: Promise<Browser> | undefined

/** The browser of this process, which ends with it. A context of it costs much less than another start. */
export const sharedChromium = (): Promise<Browser> => {
  shared ??= launchChromium()
  return shared
}
