import { describe, expect, test } from 'vitest'
import { localServer } from '../../../test/support/local-server.ts'
import { descriptors } from '../../client/test/support/descriptors.ts'
import { startService } from '../../client/test/support/service.ts'
import { baton } from './support/baton.ts'
import { Scratch } from './support/scratch.ts'

describe('an unreachable service', () => {
  const url = 'http://127.0.0.1:2'

  test('is reported once at the start, and again when the retries end', async () => {
    const { code, stdout, stderr } = await baton(['tasks', '--timeout', '1'], { url })
    expect(code).toBe(5)
    expect(stdout).toBe('')
    expect(stderr.split('\n')).toEqual([
      expect.stringMatching(/^baton: http:..127.0.0.1:2 cannot be reached.*; retrying for up to 1 s$/),
      expect.stringMatching(/^baton: http:..127.0.0.1:2 cannot be reached/),
      expect.stringContaining('Check that the service is running'),
      '',
    ])
    const asJson = await baton(['tasks', '--json', '--timeout', '1'], { url })
    const notes = asJson.stderr
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(notes).toMatchObject([{ note: expect.any(String) }, { error: { name: 'UnreachableError' } }])
    const calledBack = await baton(['call-back', '-', '--timeout', '1'], {
      url,
      input: JSON.stringify(descriptors('x', 1)),
    })
    expect(calledBack.stderr).toContain('; retrying for up to 1 s')
  })

  test('gets only one request to rerun done partitions, unless a time is given', async () => {
    const retry = (...flags: string[]) => baton(['retry', 'orders', '--done', ...flags], { url })
    const once = await retry()
    expect(once).toMatchObject({ code: 5, stderr: expect.not.stringContaining('retrying') })
    expect((await retry('--timeout', '1')).stderr).toContain('; retrying for up to 1 s')
  })

  test('that accepts connections but does not answer is given up in the requested time', async () => {
    const { url } = await localServer(() => {})
    const tasks = await baton(['tasks', '--timeout', '1'], { url })
    expect(tasks).toMatchObject({ code: 5, stderr: expect.stringContaining('did not answer within 1 s') })
    const wait = await baton(['wait', 'orders', '--for', '0.5'], { url })
    expect(wait).toMatchObject({ code: 124, stderr: expect.stringContaining('did not answer within 1 s') })
  })

  test.each([
    ['its base path is missing', async () => (await startService('--base-path', '/baton')).url],
    ['something else answers', notBaton],
  ])('is reported as a wrong URL, not as an unknown task, if %s', async (_, start) => {
    const { origin } = new URL(await start())
    for (const args of [['tasks', 'orders'], ['pull']]) {
      const { code, stderr } = await baton(args, { url: origin })
      expect(stderr).toContain('it must be the URL of Baton, including its base path')
      expect(code).toBe(1)
    }
  })

  test('behind a proxy that answers for it is retried, and reported in two lines', async () => {
    const page = '<html>\r\n<body>\u001b[31m502 Bad Gateway</body>\r\n</html>\r\n'
    const { url } = await localServer((_, response) => response.writeHead(502).end(page))
    const { code, stderr } = await baton(['tasks', '--timeout', '0'], { url })
    expect(stderr).toBe(
      'baton: the answer is not from Baton: status 502 with <html> <body> [31m502 Bad Gateway</body> </html>\n' +
        'A proxy answered. Check that the service is running, and that the proxy can reach it.\n',
    )
    expect(code).toBe(5)
  })

  test('is explained if it is called over TLS but listens for plain HTTP', async () => {
    const { port } = await startService()
    const { code, stderr } = await baton(['tasks'], { url: `https://127.0.0.1:${port}` })
    expect(stderr).toContain(`https://127.0.0.1:${port} does not use TLS`)
    expect(stderr).toContain(`use http://127.0.0.1:${port}`)
    expect(code).toBe(2)
  })

  test('is replaced by another of several URLs', async () => {
    const service = await startService()
    const urls = `http://127.0.0.1:2,${service.url}`
    expect(await baton(['tasks', '--url', urls, '--timeout', '0'])).toMatchObject({ code: 0, stderr: '' })
    const none = await baton(['tasks', '--url', 'http://127.0.0.1:2,http://127.0.0.1:3', '--timeout', '0'])
    expect(none.stderr).toContain('none of http://127.0.0.1:2, http://127.0.0.1:3 answers')
    expect(none.code).toBe(5)
  })

  test('differs from one that requires a token, which is explained', async () => {
    const tokens = { tokens: [{ name: 'on call', token: 'sesame-k7Q2xZr9TbW4mLp8', roles: ['operator'] }] }
    const file = new Scratch().file('tokens.json', JSON.stringify(tokens))
    const service = await startService('--tokens-file', file)
    const { code, stderr } = await baton(['tasks'], { url: service.url })
    expect(stderr).toBe('baton: the service requires a token\nSet BATON_TOKEN or --token.\n')
    expect(code).toBe(1)
    const wrong = await baton(['tasks'], { url: service.url, env: { BATON_TOKEN: 'guessed' } })
    expect(wrong.stderr).toContain('Check that BATON_TOKEN or --token is a token')
  })
})

/** A web server that does not know the requested paths, with its own error page. */
async function notBaton(): Promise<string> {
  return (await localServer((_, response) => response.writeHead(404).end('<html>Not Found</html>'))).url
}
