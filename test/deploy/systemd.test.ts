import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { readSettings } from '../../packages/server/src/settings.ts'
import { root } from '../docs/support/markdown.ts'

// `npm run check:systemd` runs the unit under a real systemd.

const read = (name: string) => readFileSync(`${root}deploy/systemd/${name}`, 'utf8').split('\n')

test('the service accepts every setting of the environment file', () => {
  const shown = read('baton.env').flatMap((line) => /^#?(BATON_\w+)=(.+)$/.exec(line)?.slice(1) ?? [])
  const pairs = shown.flatMap((name, at) => (at % 2 === 0 ? [[name, shown[at + 1] ?? '']] : []))
  expect(pairs.length).toBeGreaterThan(4)
  const { warnings } = readSettings(new Map(), Object.fromEntries(pairs))
  expect(warnings).toEqual([])
})

test('the unit keeps its state where the service looks for it, and waits for it to stop', () => {
  const unit = new Map(
    read('baton.service').flatMap((line) => {
      const [, key, value] = /^([A-Z]\w+)=(.*)$/.exec(line) ?? []
      return key === undefined ? [] : [[key, value ?? ''] as const]
    }),
  )
  expect(unit.get('Environment')).toBe(`BATON_DATA=/var/lib/${unit.get('StateDirectory')}`)
  expect(unit.get('EnvironmentFile')).toBe('-/etc/baton/baton.env')
  expect(Number.parseInt(unit.get('TimeoutStopSec') ?? '', 10)).toBeGreaterThanOrEqual(10)
})
