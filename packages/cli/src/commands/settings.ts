import type { TaskSettingsRequest } from '@baton/client'
import { type SettingName, settingKeywords, settingNames, settingWord } from '@baton/protocol/core'
import type { Arguments, Command, Flag, Flags } from '../command-line.ts'
import { connect, connectionFlags, located } from '../connection.ts'
import { exitCodes, UsageError } from '../errors.ts'
import { table } from '../show/table.ts'
import { print, printJson } from '../terminal.ts'

const flags: Flags = Object.fromEntries(settingNames.map((name) => [settingWord(name), flagOf(name)]))

export const settings: Command = {
  operands: 'TASK',
  operandCount: [1, 1],
  details:
    'Shows the settings of a task, and changes those that are given; the others stay as they are. Can be used\n' +
    'before the first call-back. Current leases and back-offs do not change.',
  flags: {
    ...flags,
    reset: {
      kind: 'text',
      placeholder: 'SETTING',
      choices: settingNames.map(settingWord),
      repeatable: true,
      description: 'go back to the value of the service; one flag per setting',
    },
    ...connectionFlags,
  },
  examples: [
    { line: 'baton settings orders-2026-03', says: 'Show the settings' },
    {
      line: 'baton settings orders-2026-03 --lease-seconds 1800 --max-leases 8',
      says: 'Eight leases at a time, of half an hour each',
    },
    { line: 'baton settings orders-2026-03 --weight 3', says: 'Three times the share of other tasks' },
    { line: 'baton settings orders-2026-03 --reset max-leases', says: 'No limit any more' },
  ],
  run: async (given) => {
    const [taskId = ''] = given.operands
    const change = settingsIn(given)
    const client = connect(given)
    const isChange = Object.keys(change).length > 0
    const answer = await (isChange ? client.changeSettings(taskId, change) : client.settings(taskId)).catch(
      (error: unknown) => {
        throw located(error, { placeOf: (pointer) => `--${settingWord(pointer.slice(1))}` })
      },
    )
    if (given.switch('json')) printJson(answer)
    else {
      const { own, ...held } = answer.settings
      const rows = Object.entries(held).map(([name, value]) => ({ name, value, isOwn: own.includes(name) }))
      print(
        table(rows, [
          { title: 'SETTING', of: ({ name }) => settingWord(name) },
          { title: 'VALUE', of: ({ value }) => String(value ?? 'no limit') },
          { title: 'SET FOR', of: ({ isOwn }) => (isOwn ? 'this task' : 'the service') },
        ]),
      )
    }
    return exitCodes.ok
  },
}

function flagOf(name: SettingName): Flag {
  const rules = settingKeywords[name]
  const description = `${rules.description.charAt(0).toLowerCase()}${rules.description.slice(1)}`
  if (rules.type === 'boolean')
    return {
      kind: 'text',
      placeholder: 'on|off',
      choices: ['on', 'off'],
      otherwise: 'unchanged',
      description,
    }
  return {
    kind: 'number',
    placeholder: name.endsWith('Seconds') ? 'SECONDS' : 'N',
    ...(Number.isInteger(rules.minimum) ? { minimum: rules.minimum } : {}),
    maximum: rules.maximum,
    fractions: rules.type === 'number',
    otherwise: 'unchanged',
    description,
  }
}

function settingsIn(given: Arguments): TaskSettingsRequest {
  const reset = new Set(given.texts('reset'))
  const change: Partial<Record<SettingName, unknown>> = {}
  for (const name of settingNames) {
    const word = settingWord(name)
    if (reset.has(word) && given.switch(word))
      throw new UsageError(`--${word} and --reset ${word} exclude each other`)
    if (reset.has(word)) change[name] = null
    else if (given.switch(word))
      change[name] = name === 'levelBarrier' ? given.text(word) === 'on' : given.number(word)
  }
  return change as TaskSettingsRequest
}
