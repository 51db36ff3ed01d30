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

export async function launchChromium(...args: string[]): Promise<Browser> {
  return chromium.launch({
    args: [...packed.args.filter((argument) => !unwanted.test(argument)), ...args],
    executablePath: await (isPackedForThisMachine ? unpackedChromium() : installedChromium()),
    headless: true,
  })
}
