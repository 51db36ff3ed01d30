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
    name: 'demo',
    summary: 'run a service with simulated producers and workers',
    load: async () => (await import('./commands/demo.ts')).demo,
  },
  {
    name: 'call-back',
    summary: 'call back the partitions of a task',
    load: async () => (await import('./commands/call-back.ts')).callBack,
  },
  {
    name: 'work',
    summary: 'run a command for each partition',
    load: async () => (await import('./commands/work.ts')).work,
  },
  {
    name: 'tasks',
    summary: 'show the progress of tasks',
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
    summary: 'show and change webhook subscriptions',
    load: async () => (await import('./commands/subscriptions.ts')).subscriptions,
  },
  {
    name: 'partitions',
    summary: 'list the partitions of a task',
    load: async () => (await import('./commands/partitions.ts')).partitions,
  },
  {
    name: 'throughput',
    summary: 'show the throughput of a task, or of all, by minute or hour',
    load: async () => (await import('./commands/throughput.ts')).throughput,
  },
  {
    name: 'status',
    summary: 'show service nodes, workers and producers',
    load: async () => (await import('./commands/instances.ts')).status,
  },
  {
    name: 'ready',
    summary: 'wait until the service is ready',
    load: async () => (await import('./commands/fleet.ts')).ready,
  },
  {
    name: 'scale',
    summary: 'show how many workers the backlog needs',
    load: async () => (await import('./commands/fleet.ts')).scale,
  },
  {
    name: 'release',
    summary: 'revoke the leases of an instance, or of one partition',
    load: async () => (await import('./commands/instances.ts')).release,
  },
  {
    name: 'pause-instance',
    summary: 'hand out nothing to an instance',
    load: async () => (await import('./commands/instances.ts')).pauseInstance,
  },
  {
    name: 'resume-instance',
    summary: 'end the pause of an instance',
    load: async () => (await import('./commands/instances.ts')).resumeInstance,
  },
  { name: 'pause', summary: 'stop handing out partitions of a task', load: control('pause') },
  { name: 'resume', summary: 'end a pause', load: control('resume') },
  { name: 'retry', summary: 'retry parked partitions', load: control('retry') },
  { name: 'cancel', summary: 'cancel a task', load: control('cancel') },
  { name: 'seal', summary: 'seal a task: refuse new partitions from now on', load: control('seal') },
  {
    name: 'skip-parked',
    summary: 'open a level barrier despite parked partitions',
    load: control('skip-parked'),
  },
  {
    name: 'level-barrier',
    summary: 'enable or disable the level barrier of a task',
    load: control('level-barrier'),
  },
  { name: 'owner', summary: 'give a task to another producer', load: control('owner') },
  {
    name: 'settings',
    summary: 'show or change the settings of a task',
    load: async () => (await import('./commands/settings.ts')).settings,
  },
  {
    name: 'tables',
    summary: 'show the compute tables: leases, waiting work, pace',
    load: async () => (await import('./commands/tables.ts')).tables,
  },
  {
    name: 'table',
    summary: 'show a compute table, limit its leases or pause it',
    load: async () => (await import('./commands/tables.ts')).tableCommand,
  },
  {
    name: 'manifest',
    summary: 'export the partitions of a task as NDJSON',
    load: async () => (await import('./commands/partitions.ts')).manifest,
  },
  {
    name: 'pull',
    summary: 'pull partitions, for scripts',
    load: async () => (await import('./commands/leases.ts')).pull,
  },
  {
    name: 'settle',
    summary: 'settle leases, for scripts',
    load: async () => (await import('./commands/leases.ts')).settle,
  },
  {
    name: 'renew',
    summary: 'renew leases, for scripts',
    load: async () => (await import('./commands/leases.ts')).renew,
  },
  {
    name: 'backup',
    summary: 'back up the embedded store, also while the service runs',
    load: async () => (await import('./commands/store.ts')).backup,
  },
  {
    name: 'verify',
    summary: 'check the consistency of a store',
    load: async () => (await import('./commands/store.ts')).verify,
  },
  {
    name: 'export',
    summary: 'export the data of a stopped store to a file',
    load: async () => (await import('./commands/store.ts')).exportCommand,
  },
  {
    name: 'import',
    summary: 'import an export into an empty store',
    load: async () => (await import('./commands/store.ts')).importCommand,
  },
  {
    name: 'audit',
    summary: 'show who changed what, or refused tokens',
    load: async () => (await import('./commands/audit.ts')).audit,
  },
  {
    name: 'token',
    summary: 'create a token for the tokens file of a service',
    load: async () => (await import('./commands/access.ts')).token,
  },
  {
    name: 'completion',
    summary: 'print the completion script of a shell',
    load: async () => (await import('./commands/completion.ts')).completionOf(commands),
  },
]

/** Commands for other commands and for the scripts that `completion` prints, not for people. */
export const unlistedCommands: readonly CommandEntry[] = [
  {
    name: 'complete',
    summary: 'list names for shell completion',
    load: async () => (await import('./commands/completion.ts')).complete,
  },
  {
    name: 'demo-worker',
    summary: 'a worker of the demo that crashes',
    load: async () => (await import('./demo/crashing-worker.ts')).crashingWorker,
  },
]
