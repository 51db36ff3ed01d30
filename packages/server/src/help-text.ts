import { flagOf, type SettingName, settingNames, settingOf, variableOf } from './config.ts'

/** What --help prints: the table of all settings, made from their one schema. */
export function helpText(version: string): string {
  const rows = settingNames.map((name) => ({
    flag: `${flagOf(name)}${placeholder(name)}`,
    variable: variableOf(name),
    standard: shownDefault(name),
    meaning: settingOf(name).description,
  }))
  const width = (column: 'flag' | 'variable') => Math.max(...rows.map((row) => row[column].length)) + 2
  const [flagWidth, variableWidth] = [width('flag'), width('variable')]
  const lines = rows.flatMap(({ flag, variable, standard, meaning }) => [
    `  ${flag.padEnd(flagWidth)}${variable.padEnd(variableWidth)}${standard}`,
    `      ${meaning}`,
  ])
  return [
    `Baton ${version}`,
    'Hands the partitions of a computed table to a fleet of workers, each to exactly one at a time.',
    '',
    'A flag beats the environment variable, which beats the default.',
    '',
    `  ${'flag'.padEnd(flagWidth)}${'environment'.padEnd(variableWidth)}default`,
    ...lines,
    `  ${'--version'.padEnd(flagWidth)}prints the version`,
    `  ${'--help'.padEnd(flagWidth)}prints this`,
    '',
  ].join('\n')
}

function placeholder(name: SettingName): string {
  const { type, enum: choices } = settingOf(name)
  if (choices !== undefined) return ` ${choices.length > 3 ? '<level>' : choices.join('|')}`
  if (type === 'boolean') return ''
  if (type === 'integer' || type === 'number') return ' <number>'
  return type === 'array' ? ' <list>' : ' <text>'
}

function shownDefault(name: SettingName): string {
  const { default: standard, shownDefault: shown } = settingOf(name)
  return shown ?? (standard === null ? 'none' : String(standard))
}
