import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type CallBackOptions, checkCallBack, parsePartitionName } from '../src/index.ts'
import { anyCallBackBody, descriptor, descriptors } from './sample-descriptors.ts'

function accepted(body: unknown, options?: CallBackOptions) {
  const check = checkCallBack(body, options)
  if (!check.ok) throw new Error(JSON.stringify(check.violations))
  return check.callBack
}

function refused(body: unknown, options?: CallBackOptions) {
  const check = checkCallBack(body, options)
  if (check.ok) throw new Error('was accepted')
  return check
}

function complaint(body: unknown) {
  const { violations, total } = refused(body)
  expect(total).toBe(1)
  return violations[0]
}

describe('a valid call-back', () => {
  test('becomes a task id, a record total and partitions', () => {
    const body = [
      descriptor({ partition_name: 'orders-2026-03-0-7', record_count: 10 }),
      descriptor({ partition_name: 'orders-2026-03-2-0', record_count: 5, priorityLevel: 2 }),
    ]
    expect(accepted(body)).toEqual({
      taskId: 'orders-2026-03',
      recordTotal: 15,
      partitions: [
        { level: 0, index: 7, recordCount: 10, computeTableName: 'results.orders', spelling: null },
        { level: 2, index: 0, recordCount: 5, computeTableName: 'results.orders', spelling: null },
      ],
    })
  })

  test('keeps the spelling of a name with leading zeros', () => {
    const [partition] = accepted([descriptor({ partition_name: 'orders-2026-03-0-07' })]).partitions
    expect(partition).toMatchObject({ level: 0, index: 7, spelling: 'orders-2026-03-0-07' })
  })

  test('may have several partitions on a level, levels with gaps, and several tables', () => {
    const body = [...descriptors(3, 1), ...descriptors(2, 9).map((d) => ({ ...d, computeTableName: 'a.b' }))]
    expect(accepted(body).partitions).toHaveLength(5)
  })

  test('reads a negative zero as zero', () => {
    const [partition] = accepted(JSON.parse(JSON.stringify([descriptor()]).replace('25000', '-0'))).partitions
    expect(Object.is(partition?.recordCount, 0)).toBe(true)
  })

  test('has its table under the configured name, and only that', () => {
    const { computeTableName, ...others } = descriptor()
    const body = [{ ...others, cubeTableName: computeTableName }]
    expect(accepted(body, { tableField: 'cubeTableName' }).partitions[0]?.computeTableName).toBe(
      'results.orders',
    )
    expect(refused([descriptor()], { tableField: 'cubeTableName' }).violations).toEqual([
      {
        pointer: '/0/computeTableName',
        detail: '"computeTableName" is not a field of the contract; did you mean cubeTableName?',
      },
      { pointer: '/0/cubeTableName', detail: 'cubeTableName is missing' },
    ])
  })

  test('may have unknown fields if they are configured to be ignored', () => {
    const body = [{ ...descriptor(), colour: 'red' }]
    expect(accepted(body, { unknownFields: 'ignore' }).partitions).toHaveLength(1)
    expect(complaint(body)).toEqual({
      pointer: '/0/colour',
      detail:
        '"colour" is not a field of the contract; remove it, or start the service with --unknown-fields keep to hand it to the worker',
    })
  })

  test('is accepted whatever its task, tables, levels and indexes are', () => {
    fc.assert(
      fc.property(anyCallBackBody, (body) => {
        const { taskId, partitions, recordTotal } = accepted(body)
        expect(taskId).toBe(body[0]?.taskId)
        expect(recordTotal).toBe(body.reduce((sum, { record_count }) => sum + record_count, 0))
        for (const [at, { level, index, spelling }] of partitions.entries()) {
          const name = body[at]?.partition_name ?? ''
          expect(parsePartitionName(taskId, name)).toEqual({ level, index, canonical: spelling === null })
        }
      }),
    )
  })
})

describe('a body that is not an array of descriptors', () => {
  test.each([
    [null, 'null'],
    ['[]', 'the string "[]"'],
    [descriptor(), 'an object'],
    [5, 'the number 5'],
    [true, 'the boolean true'],
  ])('%j is refused as a whole', (body, shown) => {
    expect(complaint(body)).toEqual({
      pointer: '',
      detail: `the body must be an array of partition descriptors, got ${shown}`,
    })
  })

  test('an empty array is refused', () => {
    expect(complaint([])).toEqual({
      pointer: '',
      detail: 'the array must have at least one partition descriptor',
    })
  })

  test('each element that is not an object is reported', () => {
    const { violations } = refused([descriptor(), null, [], 'x'])
    expect(violations).toEqual([
      { pointer: '/1', detail: 'each element must be a partition descriptor, got null' },
      { pointer: '/2', detail: 'each element must be a partition descriptor, got an empty array' },
      { pointer: '/3', detail: 'each element must be a partition descriptor, got the string "x"' },
    ])
  })
})

describe('a field', () => {
  const long = 'x'.repeat(1025)
  const noDots = 'must not be "." or "..": these cannot be used as a path segment of a URL'
  test.each([
    ['record_count', '5', 'must be a non-negative integer, got the string "5"'],
    ['record_count', 1.5, 'must be a non-negative integer, got the number 1.5'],
    ['record_count', -1, 'must be a non-negative integer, got the number -1'],
    ['record_count', null, 'must be a non-negative integer, got null'],
    ['record_count', 2 ** 53, 'must be at most 9007199254740991, got the number 9007199254740992'],
    ['record_count', Infinity, 'must be a non-negative integer, got the number Infinity'],
    ['priorityLevel', true, 'must be a non-negative integer, got the boolean true'],
    ['taskId', 5, 'must be a string, got the number 5'],
    ['taskId', '', 'must not be empty, got an empty string'],
    ['taskId', long, `must have at most 1024 characters, got the string "${'x'.repeat(40)}…"`],
    ['taskId', 'a\0', 'must not contain NUL characters or lone surrogates, got the string "a\\u0000"'],
    ['taskId', '\ud800', 'must not contain NUL characters or lone surrogates, got the string "\\ud800"'],
    ['taskId', '.', `${noDots}, got the string "."`],
    ['taskId', '..', `${noDots}, got the string ".."`],
    ['partition_name', {}, 'must be a string, got an object'],
    ['computeTableName', [1], 'must be a string, got an array'],
  ])('%s of %j is refused', (field, value, detail) => {
    expect(complaint([{ ...descriptor(), [field]: value }])).toEqual({
      pointer: `/0/${field}`,
      detail: `${field} ${detail}`,
    })
  })

  test.each(['orders', 'a.b.c', '.b', 'a.', '.', 'a..b', 'a.b\n', 'a\u0000.b', '\udfff.b'])(
    'computeTableName of %j is refused: it is not <schema>.<table>',
    (table) => {
      expect(complaint([descriptor({ computeTableName: table })])?.detail).toMatch(
        /^computeTableName must have the form <schema>\.<table>/,
      )
    },
  )

  test.each(['...', '.a', 'a.', './', '..-0-0', '. '])('taskId may contain dots, as in %j', (taskId) => {
    expect(checkCallBack([descriptor({ taskId, partition_name: `${taskId}-0-7` })]).ok).toBe(true)
  })

  test('that is missing is reported by name', () => {
    const { record_count, ...others } = descriptor()
    expect(complaint([others])).toEqual({ pointer: '/0/record_count', detail: 'record_count is missing' })
  })

  test.each([
    ['partitionName', 'partition_name'],
    ['recordCount', 'record_count'],
    ['task_id', 'taskId'],
    ['priority_level', 'priorityLevel'],
    ['computeTablename', 'computeTableName'],
    ['recrod_count', 'record_count'],
  ])('%s is reported as a misspelling of %s', (wrong, right) => {
    const { [right as 'taskId']: value, ...others } = descriptor()
    expect(refused([{ ...others, [wrong]: value }]).violations).toEqual([
      { pointer: `/0/${wrong}`, detail: `"${wrong}" is not a field of the contract; did you mean ${right}?` },
      { pointer: `/0/${right}`, detail: `${right} is missing` },
    ])
  })

  test('with an odd name has a pointer as in RFC 6901, and a very long one is not echoed', () => {
    expect(complaint([{ ...descriptor(), 'a/b~c': 1 }])?.pointer).toBe('/0/a~1b~0c')
    expect(complaint([{ ...descriptor(), ['y'.repeat(100_000)]: 1 }])?.pointer).toBe('/0')
    expect(
      complaint(JSON.parse(`[${JSON.stringify(descriptor()).replace('{', '{"__proto__":1,')}]`))?.pointer,
    ).toBe('/0/__proto__')
  })
})

describe('across fields and elements', () => {
  test('all descriptors must have the same task', () => {
    const body = [descriptor(), descriptor({ taskId: 'other', partition_name: 'other-0-8' })]
    expect(complaint(body)).toEqual({
      pointer: '/1/taskId',
      detail:
        'taskId must be the same in the whole array: /0 has "orders-2026-03", this element has "other"; ' +
        'send one array per task',
    })
  })

  test.each([
    ['other-0-7', 'must begin with the taskId and a hyphen'],
    [
      'orders-2026-03-7',
      'must have the form <taskId>-<group>-<index>, with group and index in decimal digits',
    ],
    [
      'orders-2026-03-0-x',
      'must have the form <taskId>-<group>-<index>, with group and index in decimal digits',
    ],
    ['orders-2026-03-0-9007199254740992', 'must have an index of at most 9007199254740991'],
  ])('the name %j is refused', (name, rule) => {
    expect(complaint([descriptor({ partition_name: name })])).toEqual({
      pointer: '/0/partition_name',
      detail: `partition_name ${rule}, got ${JSON.stringify(name)}`,
    })
  })

  test('the group in the name must equal priorityLevel', () => {
    expect(complaint([descriptor({ priorityLevel: 3 })])).toEqual({
      pointer: '/0/partition_name',
      detail: 'the group in partition_name is 0 but priorityLevel is 3; they must be equal',
    })
  })

  test.each(['orders-2026-03-0-7', 'orders-2026-03-0-07'])(
    'a partition must not occur twice, also as %s',
    (name) => {
      expect(complaint([descriptor(), descriptor({ partition_name: name })])).toEqual({
        pointer: '/1/partition_name',
        detail: `partition_name "${name}" names the same partition as /0: level 0, index 7; a partition can occur only once`,
      })
    },
  )

  test('the elements must be ascending by priorityLevel, and one misplaced element is one violation', () => {
    const body = [...descriptors(2, 0), ...descriptors(1, 5), ...descriptors(2, 1)]
    expect(complaint(body)).toEqual({
      pointer: '/3/priorityLevel',
      detail: 'priorityLevel 1 comes after 5; sort the array by ascending priorityLevel',
    })
  })

  test('an array must not have more than 10,000 levels, and more are one violation', () => {
    const levels = (count: number) => Array.from({ length: count }, (_, level) => descriptors(1, level)[0])
    expect(checkCallBack(levels(10_000)).ok).toBe(true)
    expect(complaint(levels(10_002))).toEqual({
      pointer: '/10000/priorityLevel',
      detail:
        'an array can have at most 10000 different values of priorityLevel; ' +
        'send this level and those after it in another array',
    })
  })

  test('the record total must be a safe integer', () => {
    const body = descriptors(3).map((d) => ({ ...d, record_count: 2 ** 52 }))
    expect(complaint(body)).toEqual({
      pointer: '/1/record_count',
      detail: 'with this record_count, the record total of the array exceeds 9007199254740991',
    })
  })
})

describe('the list of violations', () => {
  test('has all violations in the order of the document', () => {
    const body = [
      {
        priorityLevel: 1,
        partition_name: 'orders-2026-03-0-1',
        taskId: 'orders-2026-03',
        record_count: '1',
        x: 1,
      },
      7,
      descriptor({ computeTableName: 'orders' }),
    ]
    expect(refused(body).violations.map(({ pointer }) => pointer)).toEqual([
      '/0/partition_name',
      '/0/record_count',
      '/0/x',
      '/0/computeTableName',
      '/1',
      '/2/computeTableName',
      '/2/priorityLevel',
    ])
  })

  test('is truncated at a hundred, and all are counted', () => {
    const { violations, total } = refused(descriptors(250).map((d) => ({ ...d, record_count: null })))
    expect(violations).toHaveLength(100)
    expect(total).toBe(250)
    expect(violations[99]?.pointer).toBe('/99/record_count')
  })
})

test('the maximum number of levels can be set', () => {
  const named = (levels: number) =>
    Array.from({ length: levels }, (_, level) => ({
      taskId: 't',
      computeTableName: 'a.b',
      partition_name: `t-${level}-0`,
      record_count: 1,
      priorityLevel: level,
    }))
  expect(checkCallBack(named(3), { maxLevels: 3 })).toMatchObject({ ok: true })
  expect(checkCallBack(named(9), { maxLevels: 3 })).toEqual({
    ok: false,
    violations: [{ pointer: '/3/priorityLevel', detail: expect.stringContaining('at most 3 different') }],
    total: 1,
    tooManyLevels: true,
  })
})
