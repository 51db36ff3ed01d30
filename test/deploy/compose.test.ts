import { readFileSync } from 'node:fs'
import { version } from '@baton/server/version'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { commands } from '../../packages/cli/src/commands.ts'
import { readSettings } from '../../packages/server/src/settings.ts'
import { root } from '../docs/support/markdown.ts'

interface ComposedService {
  readonly build?: string
  readonly environment: Readonly<Record<string, string>>
  readonly ports?: readonly string[]
  readonly volumes?: readonly string[]
  readonly profiles?: readonly string[]
  readonly depends_on?: Readonly<Record<string, unknown>>
  readonly read_only?: boolean
  readonly stop_grace_period?: string
}

const dockerfile = readFileSync(`${root}Dockerfile`, 'utf8')
/** The settings of the image. */
const ofImage = Object.fromEntries(
  [...dockerfile.matchAll(/\b(BATON_[A-Z]+)=(\S+)/g)]
    .filter(([, name]) => name !== 'BATON_ALLOW_ANONYMOUS')
    .map(([, name, value]) => [name, value]),
)
const { services, volumes } = parse(readFileSync(`${root}compose.yaml`, 'utf8'), { merge: true }) as {
  services: Record<string, ComposedService>
  volumes: Record<string, unknown>
}
const nodes = Object.entries(services).filter(([, { build }]) => build !== undefined)

test('the image has its health check, version and settings', () => {
  expect(Object.keys(ofImage)).toEqual(['BATON_HOST', 'BATON_DATA'])
  expect(dockerfile).toContain(`VOLUME ${ofImage['BATON_DATA']}\n`)
  expect(dockerfile).toContain(`ARG VERSION=${version}\n`)
  const [, health = ''] = /HEALTHCHECK .*CMD \["baton", "(\w+)"/.exec(dockerfile) ?? []
  expect(commands.map(({ name }) => name)).toContain(health)
})

test('compose.yaml has one node, or three on PostgreSQL', () => {
  expect(nodes.filter(([, { profiles }]) => profiles === undefined).map(([name]) => name)).toEqual(['baton'])
  expect(nodes.map(([name]) => name)).toEqual(['baton', 'baton-1', 'baton-2', 'baton-3'])
})

test.each(nodes)('%s starts with its settings, and is open on this machine only', (name, node) => {
  const environment = Object.fromEntries(
    Object.entries(node.environment).map(([key, value]) => [key, value.replace(/\$\{\w+:-(\w+)\}/, '$1')]),
  )
  const { config, warnings } = readSettings(new Map(), { ...ofImage, ...environment })
  expect(warnings).toEqual([])
  const inCluster = { instanceId: name, peerUrl: `http://${name}:7070`, databaseUrl: expect.any(String) }
  expect(config).toMatchObject(name === 'baton' ? { data: '/var/lib/baton', databaseUrl: null } : inCluster)
  expect(node.ports).toEqual([expect.stringMatching(/^127\.0\.0\.1:707[0-3]:7070$/)])
  expect(node).toMatchObject({ read_only: true, stop_grace_period: '15s' })
  const mounted = (node.volumes ?? []).map((one) => one.split(':'))
  for (const [volume = '', path] of mounted) {
    expect(Object.keys(volumes)).toContain(volume)
    expect(path).toBe(ofImage['BATON_DATA'])
  }
  for (const other of Object.keys(node.depends_on ?? {})) expect(Object.keys(services)).toContain(other)
})
