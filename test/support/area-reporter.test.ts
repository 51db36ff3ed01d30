import { expect, test } from 'vitest'
import { areaOf, summaryByArea } from './area-reporter.ts'

test('an area is a package, a test folder of the server, or a folder of test/', () => {
  expect(areaOf('packages/server/test/http/pull.test.ts')).toBe('server/http')
  expect(areaOf('packages/server/test/disk/postgres/tls.test.ts')).toBe('server/disk')
  expect(areaOf('packages/server/test/main.test.ts')).toBe('server')
  expect(areaOf('packages/cli/src/show/progress.test.ts')).toBe('cli')
  expect(areaOf('packages/cli/test/work.test.ts')).toBe('cli')
  expect(areaOf('test/browser/links.test.ts')).toBe('browser')
})

test('the summary has a line for each area, with its files, tests, failures and seconds', () => {
  const file = (path: string, tests: number, millis: number, failed = 0) => ({ path, tests, failed, millis })
  const lines = summaryByArea([
    file('test/browser/links.test.ts', 3, 12_340),
    file('packages/server/test/http/pull.test.ts', 40, 900),
    file('packages/server/test/http/renew.test.ts', 7, 150, 1),
  ])
  expect(lines).toEqual([
    ' area         files  tests  failed  seconds',
    ' browser          1      3       0     12.3',
    ' server/http      2     47       1      1.1',
  ])
})
