import type { CommandEntry, CommandWithOwnLine } from './command-line.ts'

const control = (verb: string) => async () => (await import('./commands/control.ts')).controlCommand(verb)

/** Parses its own command line: the settings of the service. */
const serve: CommandWithOwnLine = {
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

export const commands: readonly CommandEntry[] = [
  {
    name: 'serve',
    summary: 'run the service',
    load: async () => serve,
  },
  {
    name: 'call-back',
    summary: 'hand the partitions of a task over',
    load: async () => (await import('./commands/call-back.ts')).callBack,
  },
  {
    name: 'work',
    summary: 'run a command for each partition',
    load: async () => (await import('./commands/work.ts')).work,
  },
  {
    name: 'tasks',
    summary: 'show how far tasks are',
    load: async () => (await import('./commands/tasks.ts')).tasks,
  },
  {
    name: 'wait',
    summary: 'wait until tasks are done',
    load: async () => (await import('./commands/wait.ts')).wait,
  },
  {
    name: 'on',
    summary: 'run a command for each event',
    load: async () => (await import('./commands/on.ts')).on,
  },
  {
    name: 'subscriptions',
    summary: 'show and change which events webhooks send, and where',
    load: async () => (await import('./commands/subscriptions.ts')).subscriptions,
  },
  {
    name: 'partitions',
    summary: 'list the partitions of a task',
    load: async () => (await import('./commands/partitions.ts')).partitions,
  },
  {
    name: 'throughput',
    summary: 'show what became done of a task by minute or hour',
    load: async () => (await import('./commands/throughput.ts')).throughput,
  },
  {
    name: 'status',
    summary: 'show service nodes, workers and producers',
    load: async () => (await import('./commands/fleet.ts')).status,
  },
  {
    name: 'scale',
    summary: 'show how many workers the backlog takes',
    load: async () => (await import('./commands/fleet.ts')).scale,
  },
  {
    name: 'release',
    summary: 'take the leases of an instance back',
    load: async () => (await import('./commands/fleet.ts')).release,
  },
  { name: 'pause', summary: 'hand out nothing more of a task', load: control('pause') },
  { name: 'resume', summary: 'end a pause', load: control('resume') },
  { name: 'retry', summary: 'give parked partitions fresh attempts', load: control('retry') },
  { name: 'cancel', summary: 'give a task up', load: control('cancel') },
  { name: 'seal', summary: 'say that no more partitions will come', load: control('seal') },
  {
    name: 'skip-parked',
    summary: 'open a level barrier in spite of parked partitions',
    load: control('skip-parked'),
  },
  {
    name: 'level-barrier',
    summary: 'let levels wait for lower ones, or not',
    load: control('level-barrier'),
  },
  {
    name: 'settings',
    summary: 'set leases, attempts, limit and share of a task',
    load: async () => (await import('./commands/control.ts')).settings,
  },
  {
    name: 'manifest',
    summary: 'export the partitions of a task as NDJSON',
    load: async () => (await import('./commands/partitions.ts')).manifest,
  },
  {
    name: 'pull',
    summary: 'take partitions, for scripts',
    load: async () => (await import('./commands/leases.ts')).pull,
  },
  {
    name: 'settle',
    summary: 'say how the work under leases ended, for scripts',
    load: async () => (await import('./commands/leases.ts')).settle,
  },
  {
    name: 'renew',
    summary: 'extend leases, for scripts',
    load: async () => (await import('./commands/leases.ts')).renew,
  },
  {
    name: 'backup',
    summary: 'copy the data of the embedded store, also while it is served',
    load: async () => (await import('./commands/store.ts')).backup,
  },
  {
    name: 'verify',
    summary: 'check that the data of a store is sound',
    load: async () => (await import('./commands/store.ts')).verify,
  },
  {
    name: 'export',
    summary: 'write all that a stopped store holds into a file',
    load: async () => (await import('./commands/store.ts')).exportCommand,
  },
  {
    name: 'import',
    summary: 'bring an export into an empty store',
    load: async () => (await import('./commands/store.ts')).importCommand,
  },
  {
    name: 'audit',
    summary: 'show who gave which order, and refused tokens',
    load: async () => (await import('./commands/access.ts')).audit,
  },
  {
    name: 'token',
    summary: 'make a token for the tokens file of a service',
    load: async () => (await import('./commands/access.ts')).token,
  },
  {
    name: 'completion',
    summary: 'print the completion script of a shell',
    load: async () => (await import('./commands/completion.ts')).completionOf(commands),
  },
]

/** Commands for the scripts that `completion` prints, not for people. */
export const unlistedCommands: readonly CommandEntry[] = [
  {
    name: 'complete',
    summary: 'list what a shell can complete',
    load: async () => (await import('./commands/completion.ts')).complete,
  },
]
