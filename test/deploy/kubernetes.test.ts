import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { scaleSchema } from '@baton/protocol'
import { version } from '@baton/server/version'
import { describe, expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { Arguments } from '../../packages/cli/src/command-line.ts'
import { work } from '../../packages/cli/src/commands/work.ts'
import { readSettings } from '../../packages/server/src/settings.ts'
import { Scrape } from '../../packages/server/test/support/scrape.ts'
import { descriptors, TestApp } from '../../packages/server/test/support/test-app.ts'
import { servedRoutes } from '../docs/support/routes.ts'
import { askedIn } from '../examples/support/promql.ts'

const folder = fileURLToPath(new URL('../../deploy/kubernetes/', import.meta.url))

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
    const worker = kindIn('workers.yaml', 'Deployment')
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

const readme = readFileSync(`${folder}README.md`, 'utf8')

/** The keys of each Secret that the README creates. */
const secrets = new Map(
  [...readme.matchAll(/^kubectl create secret generic (\S+) --from-(?:file|literal) ([\w.]+)/gm)].map(
    ([, name = '', key = '']) => [name, key],
  ),
)

const podOf = (manifest: Manifest): Manifest => manifest.spec.template.spec

/** The environment of a container, with examples in place of what the cluster fills in. */
function environmentOf(container: Manifest): Record<string, string> {
  const entries = container.env.map(({ name, value, valueFrom }: Manifest) => {
    if (value !== undefined) return [name, value.replace('$(POD_IP)', '10.0.0.7')]
    const { secretKeyRef, fieldRef } = valueFrom
    if (fieldRef !== undefined) expect(['metadata.name', 'status.podIP']).toContain(fieldRef.fieldPath)
    else expect(secrets.get(secretKeyRef.name)).toBe(secretKeyRef.key)
    return [name, fieldRef === undefined ? 'postgres://baton:secret@db/baton' : 'a-name']
  })
  return Object.fromEntries(entries)
}

test('every file is listed, and every manifest has a kind and a name', () => {
  const files = readdirSync(folder).filter((name) => name.endsWith('.yaml'))
  expect(files).toHaveLength(5)
  for (const file of files) {
    expect(readme).toContain(`(${file})`)
    for (const { apiVersion, kind, metadata } of manifestsIn(file))
      expect([apiVersion, kind, metadata.name]).toEqual(Array(3).fill(expect.stringMatching(/^\S+$/)))
  }
})

describe.each([
  ['embedded.yaml', 'StatefulSet'],
  ['postgres.yaml', 'Deployment'],
])('%s', (file, kind) => {
  const manifests = manifestsIn(file)
  const workload = kindIn(file, kind)
  const { labels } = workload.spec.template.metadata
  const pod = podOf(workload)
  const [container] = pod.containers

  test('every selector finds the pods', () => {
    const found = manifests.flatMap(selectorsIn).filter((selector) => !('baton-client' in selector))
    // Service, workload, and with several nodes also spread, disruption budget and network policy.
    expect(found).toHaveLength(kind === 'StatefulSet' ? 2 : 7)
    for (const selector of found) expect(selector).toEqual(labels)
  })

  test('the ports of Service, probes and policy are one of the container', () => {
    expect(container.ports).toEqual([{ name: 'http', containerPort: 7070 }])
    const [served] = kindIn(file, 'Service').spec.ports
    const { startupProbe, livenessProbe, readinessProbe } = container
    const probed = [startupProbe, livenessProbe, readinessProbe].map(({ httpGet }) => httpGet.port)
    const admitted = manifests.flatMap(({ kind: of, spec }) =>
      of === 'NetworkPolicy' ? spec.ingress.flatMap(({ ports }: Manifest) => ports) : [],
    )
    const ports = [served.targetPort, ...probed, ...admitted.map(({ port }) => port)]
    expect(new Set(ports)).toEqual(new Set(['http']))
    expect(workload.spec.serviceName ?? 'baton').toBe(kindIn(file, 'Service').metadata.name)
  })

  test('the probes are routes of the service', async () => {
    const { startupProbe, livenessProbe, readinessProbe } = container
    const paths = [startupProbe, livenessProbe, readinessProbe].map(({ httpGet }) => httpGet.path)
    expect(paths).toEqual(['/livez', '/livez', '/readyz'])
    const { routes } = await servedRoutes()
    for (const path of paths) expect(routes).toContain(`GET ${path}`)
  })

  test('the service accepts the settings, with those of the image', () => {
    const { POD_IP: _, ...environment } = environmentOf(container)
    const { config, warnings } = readSettings(new Map(), { BATON_HOST: '0.0.0.0', ...environment })
    expect(warnings).toEqual([])
    const stored = kind === 'StatefulSet' ? { databaseUrl: null } : { peerUrl: 'http://10.0.0.7:7070' }
    expect(config).toMatchObject({ tokensFile: '/etc/baton/tokens.json', port: 7070, ...stored })
    expect(Object.keys(environment).every((name) => name.startsWith('BATON_'))).toBe(true)
  })

  test('every mounted volume exists, and the settings name files in them', () => {
    const claims = workload.spec.volumeClaimTemplates ?? []
    const volumes = [
      ...pod.volumes.map(({ name }: Manifest) => name),
      ...claims.map((one: Manifest) => one.metadata.name),
    ]
    expect(container.volumeMounts.map(({ name }: Manifest) => name).toSorted()).toEqual(volumes.toSorted())
    const { BATON_TOKENS_FILE: tokens, BATON_DATA: data } = environmentOf(container)
    const paths = container.volumeMounts.map(({ mountPath }: Manifest) => mountPath)
    for (const path of [tokens, data])
      if (path !== undefined)
        expect(paths.some((mounted: string) => path.startsWith(`${mounted}/`))).toBe(true)
    const [{ secret }] = pod.volumes
    expect(secrets.get(secret.secretName)).toBe('tokens.json')
  })

  test('the pod is restricted, and has time to stop', () => {
    expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 10_001, fsGroup: 10_001 })
    expect(container.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    })
    const preStop = Number(container.lifecycle?.preStop.exec.command.at(-1) ?? 0)
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(preStop + 10)
    expect(container.image).toBe(`registry.example/baton:${version}`)
  })
})

/** The labels in every selector of a manifest. */
function selectorsIn(value: Manifest): Record<string, string>[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, inner]: [string, Manifest]) => {
    if (!/[sS]elector$/.test(key)) return selectorsIn(inner)
    return inner.matchExpressions === undefined ? [inner.matchLabels ?? inner] : []
  })
}

describe('workers.yaml', () => {
  const workload = kindIn('workers.yaml', 'Deployment')
  const [container] = podOf(workload).containers

  test('each worker is an instance, named after its pod, and reaches the Service', () => {
    const named = container.env.find(({ name }: Manifest) => name === 'BATON_INSTANCE_ID')
    expect(named.valueFrom.fieldRef).toEqual({ fieldPath: 'metadata.name' })
    const environment = environmentOf(container)
    expect(Object.keys(environment).toSorted()).toEqual(['BATON_INSTANCE_ID', 'BATON_TOKEN', 'BATON_URL'])
    const { metadata, spec } = kindIn('postgres.yaml', 'Service')
    expect(environment['BATON_URL']).toBe(`http://${metadata.name}.default.svc:${spec.ports[0].port}`)
    const policy = kindIn('postgres.yaml', 'NetworkPolicy')
    const [, clients] = policy.spec.ingress[0].from
    expect(workload.spec.template.metadata.labels).toMatchObject(clients.podSelector.matchLabels)
  })

  test('the drain fits into the grace period of the pod', () => {
    const [program, name, ...args] = container.command
    expect([program, name]).toEqual(['baton', 'work'])
    const given = Arguments.read(work.flags, args, true)
    // After the drain, commands are ended and what is left is released, which takes up to 5 seconds.
    const seconds = given.numberOrDefault('drain-seconds') + given.numberOrDefault('kill-after') + 5
    expect(seconds).toBeLessThanOrEqual(podOf(workload).terminationGracePeriodSeconds)
  })
})

/** Reads a path without wildcards as GJSON does. */
const at = (value: unknown, path: string): unknown =>
  path.split('.').reduce<unknown>((inner, key) => (inner as Record<string, unknown>)[key], value)
