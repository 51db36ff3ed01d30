import type { Flag, Flags } from './flag.ts'

export interface CompletedCommand {
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

export const completionScripts: Readonly<Record<string, Write>> = { bash, zsh, fish }
