import type { TaskSettingsRequest } from '@baton/client'
import { type SettingName, settingKeywords, settingNames, settingWord } from '@baton/protocol/core'
import type { Arguments, Command, Flag, Flags } from '../command-line.ts'
import { connect, connectionFlags, located } from '../connection.ts'
import { exitCodes } from '../errors.ts'
import { table } from '../show/table.ts'
import { print, printJson } from '../terminal.ts'

const flags: Flags = Object.fromEntries(settingNames.map((name) => [settingWord(name), flagOf(name)]))

export const settings: Command = {
  operands: 'TASK',
  operandCount: [1, 1],
  details:
    'Sets how a task is handed out, in place of what was set for it before: what is not given is as the service is set.\n' +
    'Without flags that is everything; only the level barrier stays as it is. May come before the first call-back.\n' +
    'Leases and back-offs that run are not changed.',
  flags: { ...flags, ...connectionFlags },
  examples: [
    {
      line: 'baton settings orders-2026-03 --lease-seconds 1800 --max-leases 8',
      says: 'Eight at a time, half an hour each',
    },
    { line: 'baton settings orders-2026-03 --weight 3', says: 'Three times the share of other tasks' },
  ],
  run: async (given) => {
    const [taskId = ''] = given.operands
    const answer = await connect(given)
      .settings(taskId, settingsIn(given))
      .catch((error: unknown) => {
        throw located(error, { placeOf: (pointer) => `--${settingWord(pointer.slice(1))}` })
      })
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
    return { kind: 'text', placeholder: 'on|off', choices: ['on', 'off'], otherwise: 'as it is', description }
  return {
    kind: 'number',
    placeholder: name.endsWith('Seconds') ? 'SECONDS' : 'N',
    ...(Number.isInteger(rules.minimum) ? { minimum: rules.minimum } : {}),
    maximum: rules.maximum,
    fractions: rules.type === 'number',
    otherwise: 'as the service is set',
    description,
  }
}

function settingsIn(given: Arguments): TaskSettingsRequest {
  const named = settingNames.flatMap((name) => {
    const word = settingWord(name)
    const value = name === 'levelBarrier' ? given.text(word) : given.number(word)
    return value === undefined ? [] : [[name, name === 'levelBarrier' ? value === 'on' : value] as const]
  })
  return Object.fromEntries(named)
}
