import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { scaleSchema } from '@baton/protocol'
import { describe, expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { Scrape } from '../../packages/server/test/support/scrape.ts'
import { descriptors, TestApp } from '../../packages/server/test/support/test-app.ts'
import { askedIn } from './support/promql.ts'

const folder = fileURLToPath(new URL('../../examples/kubernetes/', import.meta.url))

// biome-ignore lint/suspicious/noExplicitAny: manifests have no types here
type Manifest = any

function manifestsIn(name: string): Manifest[] {
  const documents = parseAllDocuments(readFileSync(folder + name, 'utf8'))
  expect(documents.flatMap(({ errors, warnings }) => [...errors, ...warnings])).toEqual([])
  return documents.map((document) => document.toJS())
}

const kindIn = (name: string, kind: string): Manifest => manifestsIn(name).find((one) => one.kind === kind)

/** Fields documented for KEDA 2.13 to 2.17. */
const specFields = [
  'scaleTargetRef',
  'pollingInterval',
  'cooldownPeriod',
  'initialCooldownPeriod',
  'idleReplicaCount',
  'minReplicaCount',
  'maxReplicaCount',
  'fallback',
  'advanced',
  'triggers',
]
const triggerFields = ['type', 'name', 'metadata', 'authenticationRef', 'metricType', 'useCachedMetrics']
const metadataFields: Record<string, readonly string[]> = {
  'metrics-api': [
    'url',
    'valueLocation',
    'targetValue',
    'activationTargetValue',
    'format',
    'authMode',
    'unsafeSsl',
  ],
  prometheus: [
    'serverAddress',
    'query',
    'queryParameters',
    'threshold',
    'activationThreshold',
    'namespace',
    'customHeaders',
    'ignoreNullValues',
    'unsafeSsl',
    'authModes',
    'timeout',
  ],
}

describe.each(['keda-metrics-api.yaml', 'keda-prometheus.yaml'])('%s', (name) => {
  const scaled = kindIn(name, 'ScaledObject')

  test('is a ScaledObject of the workers, with fields that KEDA documents', () => {
    expect(scaled.apiVersion).toBe('keda.sh/v1alpha1')
    const worker = kindIn('worker.yaml', 'Deployment')
    expect(scaled.spec.scaleTargetRef).toEqual({ name: worker.metadata.name })
    expect(Object.keys(scaled.spec).filter((field) => !specFields.includes(field))).toEqual([])
    expect(scaled.spec.minReplicaCount).toBe(0)
    expect(Object.keys(scaled.spec.fallback)).toEqual(['failureThreshold', 'replicas'])
    expect(scaled.spec.triggers).toHaveLength(1)
    for (const trigger of scaled.spec.triggers) {
      expect(Object.keys(trigger).filter((field) => !triggerFields.includes(field))).toEqual([])
      const known = metadataFields[trigger.type] ?? []
      expect(Object.keys(trigger.metadata).filter((field) => !known.includes(field))).toEqual([])
      // KEDA accepts strings only.
      expect(Object.values(trigger.metadata).filter((value) => typeof value !== 'string')).toEqual([])
    }
  })

  test('requests one replica for each worker', () => {
    const [{ metadata }] = scaled.spec.triggers
    expect(metadata.targetValue ?? metadata.threshold).toBe('1')
  })
})

test('the number that metrics-api reads is in the answer of a running service', async () => {
  const { metadata, authenticationRef } = kindIn('keda-metrics-api.yaml', 'ScaledObject').spec.triggers[0]
  const authentication = kindIn('keda-metrics-api.yaml', 'TriggerAuthentication')
  expect(authenticationRef.name).toBe(authentication.metadata.name)
  expect([metadata.authMode, authentication.spec.secretTargetRef[0].parameter]).toEqual(['bearer', 'token'])
  const baton = await TestApp.open()
  await baton.callBack(...descriptors('orders', 3))
  const { pathname, search } = new URL(metadata.url)
  const { status, body } = await baton.get(pathname + search)
  expect(status).toBe(200)
  expect(at(body, metadata.valueLocation)).toBe(1)
  const named = [...readFileSync(`${folder}README.md`, 'utf8').matchAll(/`valueLocation: ([\w.]+)`/g)]
  expect(named.map(([, path = '']) => at(body, path))).toEqual([3])
  // KEDA would treat null as an error.
  expect(scaleSchema.properties.desiredWorkers.type).toBe('integer')
})

test('the queried metrics are in a scrape of a running service', async () => {
  const { metadata } = kindIn('keda-prometheus.yaml', 'ScaledObject').spec.triggers[0]
  const baton = await TestApp.open()
  await baton.callBack(...descriptors('orders', 3))
  const scrape = await Scrape.of(baton)
  const readme = readFileSync(`${folder}README.md`, 'utf8')
  const queries = [metadata.query, ...[...readme.matchAll(/`(sum\([^`]+)`/g)].map(([, query]) => query)]
  expect(queries).toHaveLength(2)
  for (const { series, labels } of queries.flatMap(askedIn)) {
    const family = scrape.families.get(series)
    expect(family, series).toBeDefined()
    for (const { name, values } of labels)
      for (const value of values) expect(scrape.value(`${series}{${name}="${value}"}`)).toBeDefined()
  }
  expect(scrape.value('baton_desired_workers')).toBe(1)
})

test('each worker is an instance, named after its pod', () => {
  const [container] = kindIn('worker.yaml', 'Deployment').spec.template.spec.containers
  const variables = Object.fromEntries(
    container.env.map((one: Manifest) => [one.name, one.value ?? one.valueFrom]),
  )
  expect(variables['BATON_INSTANCE_ID']).toEqual({ fieldRef: { fieldPath: 'metadata.name' } })
  expect(Object.keys(variables).toSorted()).toEqual(['BATON_INSTANCE_ID', 'BATON_TOKEN', 'BATON_URL'])
})

/** Reads a path without wildcards as GJSON does. */
const at = (value: unknown, path: string): unknown =>
  path.split('.').reduce<unknown>((inner, key) => (inner as Record<string, unknown>)[key], value)
