import type { CommandWithOwnLine } from '../command.ts'
import { exitCodes } from '../exit-codes.ts'

export const serve: CommandWithOwnLine = {
  hasOwnLine: true,
  completedFlags: async () => {
    const { flagOf, settingNames, settingOf } = await import('@baton/server/settings')
    return Object.fromEntries(
      settingNames.map((setting) => {
        const { description, type } = settingOf(setting)
        return [flagOf(setting).slice(2), { kind: type === 'boolean' ? 'switch' : 'text', description }]
      }),
    )
  },
  run: async (argv) => {
    // The service begins as it is loaded, and reads what its process was given.
    process.argv = [...process.argv.slice(0, 2), ...argv]
    await import('@baton/server/main')
    return typeof process.exitCode === 'number' ? process.exitCode : exitCodes.ok
  },
}
