import { type BatonClient, BatonError } from '@baton/client'
import type { Command, CommandEntry, Flag, Flags } from '../command-line.ts'
import { connect, placeFlags } from '../connection.ts'
import { exitCodes, UsageError } from '../errors.ts'
import { print } from '../terminal.ts'

/** The longest time to wait for the service after Tab is pressed. */
const PATIENCE_SECONDS = 2
const MOST_TASKS = 100
/** The tables of a task are only in its own view, so this is one request per task. */
const TASKS_ASKED_FOR_TABLES = 10

const kinds: Readonly<Record<string, (client: BatonClient, begun: string) => Promise<Iterable<string>>>> = {
  tasks: async (client, begun) => {
    const { tasks } = await client.tasks({ search: begun, limit: MOST_TASKS })
    return tasks.map(({ taskId }) => taskId)
  },
  tables: async (client) => {
    const { tasks } = await client.tasks({ limit: TASKS_ASKED_FOR_TABLES })
    const views = await Promise.all(tasks.map(({ taskId }) => client.task(taskId)))
    return new Set(views.flatMap(({ computeTables }) => computeTables))
  },
  instances: async (client) => {
    const { instances } = await client.instances({ limit: MOST_TASKS })
    return instances.map(({ instanceId }) => instanceId)
  },
}

/**
 * Lists names of the service, for the scripts of `baton completion`. Prints nothing if the service cannot be
 * reached.
 */
export const complete: Command = {
  operands: 'tasks|tables|instances [BEGINNING]',
  operandCount: [1, 2],
  details:
    'Prints the names of tasks, compute tables or instances that begin with the given text, one per line.',
  flags: placeFlags,
  examples: [{ line: 'baton complete tasks orders', says: 'Called by a shell when Tab is pressed' }],
  run: async (given) => {
    const [kind = '', begun = ''] = given.operands
    const client = connect(given, {
      retryForSeconds: 0,
      timeoutSeconds: PATIENCE_SECONDS,
      onFailure: () => {},
    })
    try {
      const names = (await kinds[kind]?.(client, begun)) ?? []
      for (const name of names) if (isPlain(name) && name.startsWith(begun)) print(name)
    } catch (error) {
      if (!(error instanceof BatonError)) throw error
    }
    return exitCodes.ok
  },
}

/** Shells split and expand completed text, so names with blanks or quotes are not completed. */
function isPlain(name: string): boolean {
  return /^[\w.:@%+=/,-]+$/.test(name)
}

const helpFlag = { kind: 'switch', description: 'help' } as const

async function completed({ name, summary, load }: CommandEntry): Promise<CompletedCommand> {
  const command = await load()
  return command.hasOwnLine === true
    ? { name, summary, flags: await command.completedFlags(), operands: '' }
    : { name, summary, flags: { ...command.flags, help: helpFlag }, operands: command.operands }
}

export function completionOf(commands: readonly CommandEntry[]): Command {
  return {
    operands: 'bash|zsh|fish',
    operandCount: [1, 1],
    details:
      'Prints a script that lets the shell complete the commands, flags and flag values of baton. If BATON_URL is\n' +
      'set, it also completes the names of tasks, compute tables and instances of the service.',
    flags: {},
    examples: [
      { line: 'source <(baton completion bash)', says: 'In ~/.bashrc' },
      { line: 'source <(baton completion zsh)', says: 'In ~/.zshrc, after compinit' },
      { line: 'baton completion fish > ~/.config/fish/completions/baton.fish', says: 'For fish' },
    ],
    run: async (given) => {
      const write = completionScripts[given.operands[0] ?? '']
      if (write === undefined) throw new UsageError('completion supports bash, zsh and fish')
      const loaded = await Promise.all(commands.map(completed))
      print(write(loaded).trimEnd())
      return exitCodes.ok
    },
  }
}

interface CompletedCommand {
  readonly name: string
  readonly summary: string
  readonly flags: Flags
  /** As in the help: `TASK`, `[INSTANCE]`. */
  readonly operands: string
}

type Write = (commands: readonly CompletedCommand[]) => string

const names = (commands: readonly CompletedCommand[]) => commands.map(({ name }) => name).join(' ')
const flagWords = (flags: Flags) =>
  Object.keys(flags)
    .map((flag) => `--${flag}`)
    .join(' ')
/** Single quotes work the same in all three shells. */
const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`

/**
 * The names to request from the service to complete the value of a flag. Undefined if the service has none.
 */
function askedFor(flag: string, { kind, choices }: Flag): 'tasks' | 'tables' | undefined {
  if (kind !== 'text' || choices !== undefined) return undefined
  if (flag === 'task') return 'tasks'
  return flag === 'table' ? 'tables' : undefined
}

const operandKinds = { TASK: 'tasks', INSTANCE: 'instances' } as const

/** The same for the first operand. */
function operandAsked(operands: string): 'tasks' | 'instances' | undefined {
  const first = /^\[?(TASK|INSTANCE)\b/.exec(operands)?.[1]
  return first === undefined ? undefined : operandKinds[first as keyof typeof operandKinds]
}

/**
 * In bash: the words that may follow a flag. Fixed choices are in the script, other names are requested from
 * the service.
 */
const bashValues = ({ name, flags }: CompletedCommand): string[] =>
  Object.entries(flags).flatMap(([flag, given]) => {
    const asked = askedFor(flag, given)
    const words = given.choices?.join(' ') ?? (asked && `$(baton complete ${asked} "$word" 2>/dev/null)`)
    return words === undefined ? [] : [`    ${name}:--${flag}) words="${words}" ;;`]
  })

const bash: Write = (commands) => `_baton() {
  local word="\${COMP_WORDS[COMP_CWORD]}" before="\${COMP_WORDS[COMP_CWORD-1]}" command="\${COMP_WORDS[1]}" words=""
  case "$command:$before" in
${commands.flatMap(bashValues).join('\n')}
  esac
  if [ -n "$words" ]; then
    COMPREPLY=($(compgen -W "$words" -- "$word"))
    return
  fi
  if [ "$COMP_CWORD" -eq 1 ]; then
    words="${names(commands)}"
  else
    case "$word" in
      -*) case "$command" in
${commands.map(({ name, flags }) => `        ${name}) words="${flagWords(flags)}" ;;`).join('\n')}
      esac ;;
      *) [ "$COMP_CWORD" -eq 2 ] && case "$command" in
${commands
  .flatMap(({ name, operands }) => {
    const asked = operandAsked(operands)
    return asked === undefined
      ? []
      : [`        ${name}) words="$(baton complete ${asked} "$word" 2>/dev/null)" ;;`]
  })
  .join('\n')}
      esac ;;
    esac
  fi
  if [ -n "$words" ]; then COMPREPLY=($(compgen -W "$words" -- "$word"))
  else COMPREPLY=($(compgen -f -- "$word")); fi
}
complete -o filenames -F _baton baton
`

const asking = (kind: string) => `($(baton complete ${kind} "$words[CURRENT]" 2>/dev/null))`

/** In zsh: what follows the description of a flag. */
function zshValue(flag: string, given: Flag): string {
  if (given.kind === 'switch') return ''
  if (given.choices !== undefined) return `:value:(${given.choices.join(' ')})`
  const asked = askedFor(flag, given)
  return asked === undefined ? ':value' : `:value:{compadd -- \${${asking(asked)}}}`
}

const zsh: Write = (commands) => `#compdef baton
_baton() {
  local -a commands=(
${commands.map(({ name, summary }) => `    ${quoted(`${name}:${summary}`)}`).join('\n')}
  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  case "$words[2]" in
${commands
  .map(({ name, flags, operands }) => {
    const specs = Object.entries(flags).map(([flag, given]) => {
      const description = given.description.replaceAll(/[[\]:]/g, ' ')
      return quoted(`--${flag}${given.kind === 'switch' ? '' : '='}[${description}]${zshValue(flag, given)}`)
    })
    const asked = operandAsked(operands)
    const first = asked === undefined ? [] : [quoted(`2:name:{compadd -- \${${asking(asked)}}}`)]
    return `    ${name}) _arguments ${[...specs, ...first, "'*:file:_files'"].join(' ')} ;;`
  })
  .join('\n')}
  esac
}
compdef _baton baton
`

const fishAsk = (kind: string) => quoted(`(baton complete ${kind} (commandline -ct) 2>/dev/null)`)

/** In fish: the value of a flag. */
function fishValue(flag: string, given: Flag): string {
  if (given.kind === 'switch') return ''
  if (given.choices !== undefined) return ` -x -a ${quoted(given.choices.join(' '))}`
  const asked = askedFor(flag, given)
  return asked === undefined ? ' -r' : ` -x -a ${fishAsk(asked)}`
}

const fish: Write = (commands) =>
  [
    'complete -c baton -n __fish_use_subcommand -f',
    ...commands.map(
      ({ name, summary }) => `complete -c baton -n __fish_use_subcommand -a ${name} -d ${quoted(summary)}`,
    ),
    ...commands.flatMap(({ name, operands }) => {
      const asked = operandAsked(operands)
      return asked === undefined
        ? []
        : [`complete -c baton -n '__fish_seen_subcommand_from ${name}' -f -a ${fishAsk(asked)}`]
    }),
    ...commands.flatMap(({ name, flags }) =>
      Object.entries(flags).map(
        ([flag, given]) =>
          `complete -c baton -n '__fish_seen_subcommand_from ${name}' -l ${flag}` +
          `${fishValue(flag, given)} -d ${quoted(given.description)}`,
      ),
    ),
    '',
  ].join('\n')

const completionScripts: Readonly<Record<string, Write>> = { bash, zsh, fish }
