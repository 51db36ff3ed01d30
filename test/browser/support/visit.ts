import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { expect, onTestFinished } from 'vitest'
import { sharedChromium } from './chromium.ts'

const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** A long timeout: the browser shares the machine with a service and other tests. */
const PATIENCE_MILLIS = 180_000

export interface VisitOptions extends BrowserContextOptions {
  /** Console messages that are allowed, because the test stops the service. */
  readonly expected?: RegExp
  /** Runs before the page is opened. */
  readonly prepare?: (page: Page) => Promise<void>
}

/** What browsers log when the server does not answer. */
export const unreachable = /net::ERR_/

/**
 * Each visit has a new browser context. When its test ends, nothing may have been written to the console and
 * no other host may have received a request.
 */
export async function visit(
  url: string,
  { expected, prepare, ...options }: VisitOptions = {},
): Promise<Page> {
  const browser = await sharedChromium()
  const context = await browser.newContext({
    viewport: { width: 1280, height: 900 },
    // Animations are redrawn constantly, and here without a graphics card.
    reducedMotion: 'reduce',
    ...options,
  })
  context.setDefaultTimeout(PATIENCE_MILLIS)
  const page = await context.newPage()
  const complaints = complaintsOf(page, expected)
  const foreign = foreignRequestsOf(page, new URL(url).host)
  onTestFinished(async () => {
    await context.close()
    expect({ complaints, foreign }).toEqual({ complaints: [], foreign: [] })
  })
  await prepare?.(page)
  await page.goto(url)
  return page
}

function complaintsOf(page: Page, expected: RegExp | undefined): string[] {
  const complaints: string[] = []
  page.on('console', (line) => {
    const text = line.text()
    const isExpected =
      /the server responded with a status of (?:401|403|404|409|422)/.test(text) || expected?.test(text)
    if ((line.type() === 'error' || line.type() === 'warning') && !isExpected) complaints.push(text)
  })
  page.on('pageerror', (error) => complaints.push(String(error.stack)))
  return complaints
}

function foreignRequestsOf(page: Page, host: string): string[] {
  const foreign: string[] = []
  page.on('request', (request) => {
    if (new URL(request.url()).host !== host) foreign.push(request.url())
  })
  return foreign
}

interface AxeViolation {
  readonly id: string
  readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[]
}

/** The violations that axe-core finds in the current page, as text. */
export const accessibilityFaults = (page: Page): Promise<string[]> => faultsOf(page, {})

/** Those of one operation of each kind: see `DETACH_ALIKE`. */
export const accessibilityFaultsOfKinds = (page: Page): Promise<string[]> =>
  withOneOfEachKind(page, () => faultsOf(page, {}))

/** Those of the colours alone. */
export const contrastFaults = (page: Page): Promise<string[]> =>
  withOneOfEachKind(page, () => faultsOf(page, { runOnly: ['color-contrast'] }))

/**
 * The API reference has dozens of operations, and checking all of them takes seconds. This takes those out in
 * which every kind of element occurs in an earlier one.
 */
const DETACH_ALIKE = `
  window.seenKinds = new Set()
  window.alike = [...document.querySelectorAll('article.operation')].filter((operation) => {
    const elements = [...operation.querySelectorAll('*')]
    const kinds = elements.map((one) => one.tagName + '.' + one.getAttribute('class'))
    const isAlike = kinds.every((kind) => seenKinds.has(kind))
    for (const kind of kinds) seenKinds.add(kind)
    return isAlike
  }).map((operation) => ({ operation, place: document.createComment('') }))
  for (const { operation, place } of alike) operation.replaceWith(place)`

const ATTACH_ALIKE = 'for (const { operation, place } of alike) place.replaceWith(operation)'

async function withOneOfEachKind<T>(page: Page, run: () => Promise<T>): Promise<T> {
  await page.evaluate(DETACH_ALIKE)
  const found = await run()
  await page.evaluate(ATTACH_ALIKE)
  return found
}

async function faultsOf(page: Page, options: { readonly runOnly?: readonly string[] }): Promise<string[]> {
  // Injected through the debugger, because the page's content security policy forbids foreign scripts.
  if (!(await page.evaluate(`'axe' in window`))) await page.evaluate(axeSource)
  const settings = { ...options, resultTypes: ['violations'], selectors: false }
  const violations = (await page.evaluate(
    `axe.run(${JSON.stringify(settings)}).then(({ violations }) => violations)`,
  )) as AxeViolation[]
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${html}\n${failureSummary}`),
  )
}

/** By how many pixels the page is wider than the window. */
export async function overflow(page: Page): Promise<number> {
  return (await page.evaluate('document.documentElement.scrollWidth - window.innerWidth')) as number
}

/** Records every text that the element shows from now on, however briefly. */
export async function listenTo(page: Page, selector: string): Promise<() => readonly string[]> {
  const heard: string[] = []
  await page.exposeFunction('heard', (text: string) => {
    if (heard.at(-1) !== text) heard.push(text)
  })
  await page.addInitScript(`new MutationObserver(() => {
    const element = document.querySelector(${JSON.stringify(selector)})
    if (element !== null) window.heard(element.innerText.replace(/\\s+/g, ' '))
  }).observe(document, { subtree: true, childList: true, characterData: true })`)
  return () => heard
}
