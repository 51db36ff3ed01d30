import { expect, test } from 'vitest'
import { MemoryDisk } from '../../../src/disk/memory/memory-disk.ts'
import { MemoryMedium } from '../../../src/disk/memory/memory-medium.ts'
import { openEngine } from '../../../src/handoff/engine/engine-store.ts'
import { aTask, byId, images, NOW, rows } from '../../disk/conformance/builders.ts'
import { testPolicy } from '../../store/conformance/test-policy.ts'

test('staged rows are removed after a crash, however many tasks have reruns', async () => {
  const medium = new MemoryMedium()
  const disk = new MemoryDisk(medium)
  const reruns = [{ only: null, begunAt: NOW, level: 0, index: -1 }]
  const rerunning = Array.from({ length: 1000 }, (_, at) => aTask(at + 1, { reruns }))
  const staged = aTask(1001, { staging: { first: 1, last: 3 } })
  await disk.flush(images({ tasks: byId(...rerunning, staged) }), 0)
  await disk.stage(rows(1, 1, 3))
  expect(medium.partitions.ofLane(1).ids).toHaveLength(3)
  const clock = () => NOW
  const store = await openEngine({ disk, policy: testPolicy, clock, random: () => 0, secret: () => 'a' })
  expect(medium.partitions.ofLane(1).ids).toEqual([])
  await store.close()
})
