import packed from '@sparticuz/chromium'
import { type Browser, chromium } from 'playwright-core'
import { installedChromium } from './installed-chromium.ts'
import { isPackedForThisMachine, unpackedChromium } from './packed-chromium.ts'

/**
 * Of the arguments that come with the browser, those are left out that suspend the rules of the web, which are under
 * test here, or that squeeze it into one process, where closing a page ends the browser.
 */
const unwanted =
  /single-process|no-zygote|disable-web-security|insecure-content|site-isolation|IsolateOrigins/

/** Pages are drawn without an emulated graphics card, which takes eight times as long (20 frames: 5.5 instead of 0.7 s). */
packed.setGraphicsMode = false

export async function launchChromium(...args: string[]): Promise<Browser> {
  return chromium.launch({
    args: [...packed.args.filter((argument) => !unwanted.test(argument)), ...args],
    executablePath: await (isPackedForThisMachine ? unpackedChromium() : installedChromium()),
    headless: true,
  })
}
