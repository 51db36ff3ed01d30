import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { root } from '../../release/packages.ts'
import { allVersionFaults, changelogFault } from '../../release/versions.ts'

test('every file that names the version has the same one', () => {
  expect(allVersionFaults()).toEqual([])
})

test('a release needs a heading with its date in the change log', () => {
  const changelog = '# Changelog\n\n## [Unreleased]\n\n## [1.2.0] - 2026-11-18\n'
  expect(changelogFault('1.2.0', changelog)).toBeUndefined()
  expect(changelogFault('1.2', changelog)).toContain('## [1.2]')
  expect(changelogFault('1.3.0', '## [1.3.0]\n')).toContain('## [1.3.0]')
})

test('the workflow runs the commands of this repository', () => {
  const workflow = parse(readFileSync(`${root}.github/workflows/release.yml`, 'utf8')) as {
    jobs: { release: { steps: { run?: string }[] } }
  }
  const lines = workflow.jobs.release.steps.flatMap(({ run }) => run ?? [])
  const { scripts } = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as { scripts: object }
  const called = lines.flatMap((line) => [...line.matchAll(/npm run (\S+)/g)].map(([, name = '']) => name))
  expect(called).toEqual(['check', 'test:long', 'release'])
  for (const name of called) expect(Object.keys(scripts)).toContain(name)
})
