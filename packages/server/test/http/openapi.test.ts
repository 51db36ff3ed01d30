import { describe, expect, test } from 'vitest'
import { TestApp } from '../support/test-app.ts'

const service = TestApp.shared({ tableField: 'sparkTableName' })
const document = async () => (await service().get('/openapi.json')).body

const operations = [
  'POST /call-back',
  'GET /pull',
  'POST /settle',
  'POST /renew',
  'GET /test/instance-status',
  'GET /instances',
  'GET /tasks',
  'GET /totals',
  'GET /scale',
  'GET /tasks/{taskId}',
  'GET /tasks/{taskId}/partitions',
  'GET /tasks/{taskId}/manifest',
  'POST /tasks/{taskId}/pause',
  'POST /tasks/{taskId}/resume',
  'POST /tasks/{taskId}/cancel',
  'POST /tasks/{taskId}/retry',
  'POST /tasks/{taskId}/seal',
  'POST /tasks/{taskId}/skip-parked',
  'POST /tasks/{taskId}/level-barrier',
  'POST /tasks/{taskId}/owner',
  'GET /livez',
  'GET /readyz',
  'GET /metrics',
]

describe('GET /openapi.json', () => {
  test('is OpenAPI 3.1 and has every operation', async () => {
    const { openapi, paths } = await document()
    expect(openapi).toMatch(/^3\.1\./)
    const described = Object.entries<Record<string, object>>(paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    )
    expect(described).toEqual(expect.arrayContaining(operations))
  })

  test('gives each operation a unique name, a summary, and its problems', async () => {
    const { paths } = await document()
    const all = Object.values<Record<string, { operationId: string; summary: string; responses: object }>>(
      paths,
    ).flatMap((methods) => Object.values(methods))
    expect(new Set(all.map(({ operationId }) => operationId)).size).toBe(all.length)
    for (const { summary, responses } of all) {
      expect(summary).toBeTypeOf('string')
      expect(responses).toMatchObject({
        default: {
          content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
        },
      })
    }
  })

  test('states the filters of a list of tasks', async () => {
    const { paths } = await document()
    const { parameters } = paths['/tasks'].get
    expect(parameters.map(({ name }: { name: string }) => name)).toEqual([
      'state',
      'parked',
      'search',
      'limit',
      'cursor',
    ])
    expect(parameters[1]).toMatchObject({ required: false, schema: { type: 'boolean', enum: [true] } })
  })

  test('states which control request is not idempotent', async () => {
    const { paths } = await document()
    const said = (verb: string) => paths[`/tasks/{taskId}/${verb}`].post.responses['200'].description
    expect(said('pause')).toBe('Done; repeating the request has no further effect')
    expect(said('retry')).toContain('except with `done`: partitions that were finished in between run again')
  })

  test('keeps the examples of fields', async () => {
    const { components } = await document()
    const { properties } = components.schemas.PartitionDescriptor
    expect(properties.partition_name.examples).toEqual(['orders-2026-03-0-7'])
  })

  test('calls the table field by its configured name', async () => {
    const { PartitionDescriptor, PulledPartition } = (await document()).components.schemas
    expect(Object.keys(PartitionDescriptor.properties)).toEqual([
      'taskId',
      'sparkTableName',
      'partition_name',
      'record_count',
      'priorityLevel',
    ])
    expect(PulledPartition.properties).toHaveProperty('sparkTableName')
  })

  test('states the parameters and headers of a pull, alone or with a settle', async () => {
    const { paths } = await document()
    for (const operation of [paths['/pull'].get, paths['/settle'].post]) {
      const names = operation.parameters.map(({ name }: { name: string }) => name)
      const inQuery = ['table', 'task', 'batch', 'records', 'wait']
      expect(names).toEqual([...inQuery, 'x-instance-id', 'prefer', 'idempotency-key'])
    }
  })
})
