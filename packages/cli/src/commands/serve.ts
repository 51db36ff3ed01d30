import type { CommandWithOwnLine } from '../command.ts'

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
  run: async (argv) => (await import('@baton/server/run-service')).runService(argv),
}
