import type { Page } from 'playwright-core'
import { expect, onTestFinished, test } from 'vitest'
import { localServer } from '../support/local-server.ts'
import { until } from '../support/until.ts'
import { OTHER_NAMES, sharedChromium } from './support/chromium.ts'
import { partitionsOf, startService } from './support/service.ts'

/** To the browser neither is loopback, so it sends no Sec-Fetch headers to them over plain HTTP. */
const [BATON, ELSEWHERE] = OTHER_NAMES

/** A service without tokens under the name of a host, with partitions to take. */
async function startNamedService() {
  const { url, client } = await startService('--allowed-hosts', BATON)
  await client.callBack(partitionsOf('orders', [5]))
  /**
   * The statuses of the answers of a route, once there is one. Counted on the server, because browsers hide
   * some.
   */
  const answered = (method: string, route: string) =>
    until(async () => {
      const text = await (await fetch(`${url}/metrics`)).text()
      const start = `baton_requests_total{method="${method}",route="${route}",status="`
      const lines = text.split('\n').filter((line) => line.startsWith(start))
      return lines.length > 0 && lines.map((line) => line.slice(start.length, start.length + 3))
    })
  return { client, address: `http://${BATON}:${new URL(url).port}`, answered }
}

async function newPage(): Promise<Page> {
  const page = await (await sharedChromium()).newPage()
  onTestFinished(() => page.close())
  return page
}

/** A page of another origin. */
async function openPage(html: string): Promise<Page> {
  const { port } = await localServer((_request, response) =>
    response.setHeader('content-type', 'text/html').end(html),
  )
  const page = await newPage()
  await page.goto(`http://${ELSEWHERE}:${port}/`)
  return page
}

const script = (code: string) => `<script>function go() { ${code} }</script>`
const element = (name: string, fields: string) =>
  script(`document.body.append(Object.assign(document.createElement('${name}'), ${fields}))`)

const pulls: [string, (url: string) => string][] = [
  ['an image', (url) => element('img', `{ src: '${url}' }`)],
  [
    'an image that hides its page',
    (url) => element('img', `{ referrerPolicy: 'no-referrer', src: '${url}' }`),
  ],
  [
    'a script that hides its page',
    (url) => element('script', `{ referrerPolicy: 'no-referrer', src: '${url}' }`),
  ],
  ['a style sheet', (url) => element('link', `{ rel: 'stylesheet', href: '${url}' }`)],
  ['a film', (url) => element('video', `{ referrerPolicy: 'no-referrer', src: '${url}' }`)],
  ['a frame', (url) => element('iframe', `{ referrerPolicy: 'no-referrer', src: '${url}' }`)],
  ['a prefetch', (url) => element('link', `{ rel: 'prefetch', href: '${url}' }`)],
  ['a page that is opened', (url) => script(`location.href = '${url}'`)],
  [
    'a request that hides its page and accepts what programs accept',
    (url) =>
      script(`fetch('${url}', {
        mode: 'no-cors', referrerPolicy: 'no-referrer', headers: { accept: 'application/json' }
      })`),
  ],
]

test.each(pulls)('%s from another origin takes no lease', async (_, htmlOf) => {
  const { address, client, answered } = await startNamedService()
  const page = await openPage(`<!doctype html><body>${htmlOf(`${address}/pull`)}`)
  await page.evaluate('go()')
  expect(await answered('GET', '/pull')).toEqual(['403'])
  expect((await client.task('orders')).partitions).toMatchObject({ ready: 5, leased: 0 })
})

test.each<[string, (url: string) => string]>([
  [
    'a form',
    (url) =>
      `<meta name=referrer content=no-referrer><form method=post action="${url}"></form>${script('document.forms[0].submit()')}`,
  ],
  ['a beacon', (url) => script(`navigator.sendBeacon('${url}')`)],
])('%s from another origin cannot control tasks', async (_, htmlOf) => {
  const { address, client, answered } = await startNamedService()
  const order = `${address}/tasks/orders/pause`
  const page = await openPage(`<!doctype html><body>${htmlOf(order)}`)
  await page.evaluate('go()')
  expect(await answered('POST', '/tasks/{taskId}/pause')).toEqual(['403'])
  expect((await client.task('orders')).state).toBe('open')
})

test('the page of the service can control tasks under that host name', async () => {
  const { address, client } = await startNamedService()
  const page = await newPage()
  await page.goto(address)
  const status = await page.evaluate(
    `fetch('tasks/orders/pause', { method: 'POST' }).then(({ status }) => status)`,
  )
  expect(status).toBe(200)
  expect((await client.task('orders')).state).toBe('paused')
})
