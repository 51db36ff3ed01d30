import type { TaskSettingsRequest } from '@baton/client'
import {
  readPauseAfterFailures,
  type SettingName,
  settingKeywords,
  settingNames,
  settingText,
  settingWord,
} from '@baton/protocol/core'
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
    {
      line: 'baton settings orders-2026-03 --pause-after-failures 0.5/20',
      says: 'Pause when half of the last 20 attempts failed',
    },
    { line: 'baton settings orders-2026-03 --reset max-leases', says: 'No limit any more' },
  ],
  run: async (given) => {
    const [taskId = ''] = given.operands
    const change = settingsIn(given)
    const client = connect(given)
    const isChange = Object.keys(change).length > 0
    const answer = await (isChange ? client.changeSettings(taskId, change) : client.settings(taskId)).catch(
      located({ placeOf: (pointer) => `--${settingWord(pointer.slice(1))}` }),
    )
    if (given.switch('json')) printJson(answer)
    else {
      const { own, ...held } = answer.settings
      const rows = Object.entries(held).map(([name, value]) => ({ name, value, isOwn: own.includes(name) }))
      print(
        table(rows, [
          { title: 'SETTING', of: ({ name }) => settingWord(name) },
          { title: 'VALUE', of: ({ name, value }) => (value === null ? unset(name) : settingText(value)) },
          { title: 'SET FOR', of: ({ isOwn }) => (isOwn ? 'this task' : 'the service') },
        ]),
      )
    }
    return exitCodes.ok
  },
}

const unset = (name: string): string => (name === 'pauseAfterFailures' ? 'never' : 'no limit')

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
  if (rules.type === 'object')
    return { kind: 'text', placeholder: 'SHARE/OF', otherwise: 'unchanged', description }
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
    else if (given.switch(word)) change[name] = givenValue(name, given)
  }
  return change as TaskSettingsRequest
}

function givenValue(name: SettingName, given: Arguments): unknown {
  const word = settingWord(name)
  switch (settingKeywords[name].type) {
    case 'boolean':
      return given.text(word) === 'on'
    case 'object': {
      const read = readPauseAfterFailures(given.text(word) ?? '')
      if (read === undefined)
        throw new UsageError(`--${word} must be a share and a number of attempts, such as 0.5/20`)
      return read
    }
    default:
      return given.number(word)
  }
}
