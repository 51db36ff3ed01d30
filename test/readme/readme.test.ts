import { describe, expect, test } from 'vitest'
import { ServiceProcess } from '../support/service-process.ts'
import { differencesInFirstHandOff, firstHandOff } from './support/first-hand-off.ts'

describe('the first hand-off of README.md', () => {
  test('shows what its own commands print', async () => {
    const service = await ServiceProcess.started()
    expect(await differencesInFirstHandOff(service.url)).toEqual([])
  })

  test('is a hand-off from call-back to done', () => {
    const blocks = firstHandOff()
    const commands = blocks.map((block) => block.commands).join('\n')
    for (const path of ['/call-back', '/pull', '/settle', '/tasks/']) expect(commands).toContain(path)
    expect(blocks.filter(({ shown }) => shown !== null)).toHaveLength(4)
  })
})
