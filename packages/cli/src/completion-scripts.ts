import type { Flags } from './flag.ts'

export interface CompletedCommand {
  readonly name: string
  readonly summary: string
  readonly flags: Flags
}

type Write = (commands: readonly CompletedCommand[]) => string

const names = (commands: readonly CompletedCommand[]) => commands.map(({ name }) => name).join(' ')
const flagWords = (flags: Flags) =>
  Object.keys(flags)
    .map((flag) => `--${flag}`)
    .join(' ')
/** Within single quotes, as all three shells read them. */
const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`

const bash: Write = (commands) => `_baton() {
  local word="\${COMP_WORDS[COMP_CWORD]}" command="\${COMP_WORDS[1]}" words
  if [ "$COMP_CWORD" -eq 1 ]; then
    words="${names(commands)}"
  else
    case "$command" in
${commands.map(({ name, flags }) => `      ${name}) words="${flagWords(flags)}" ;;`).join('\n')}
    esac
  fi
  case "$word" in
    -*) COMPREPLY=($(compgen -W "$words" -- "$word")) ;;
    *) [ "$COMP_CWORD" -eq 1 ] && COMPREPLY=($(compgen -W "$words" -- "$word")) || COMPREPLY=($(compgen -f -- "$word")) ;;
  esac
}
complete -o filenames -F _baton baton
`

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
  .map(({ name, flags }) => {
    const specs = Object.entries(flags).map(([flag, { kind, description }]) =>
      quoted(
        `--${flag}${kind === 'switch' ? '' : '='}[${description.replaceAll(/[[\]:]/g, ' ')}]${kind === 'switch' ? '' : ':value'}`,
      ),
    )
    return `    ${name}) _arguments ${[...specs, "'*:file:_files'"].join(' ')} ;;`
  })
  .join('\n')}
  esac
}
compdef _baton baton
`

const fish: Write = (commands) =>
  [
    'complete -c baton -n __fish_use_subcommand -f',
    ...commands.map(
      ({ name, summary }) => `complete -c baton -n __fish_use_subcommand -a ${name} -d ${quoted(summary)}`,
    ),
    ...commands.flatMap(({ name, flags }) =>
      Object.entries(flags).map(
        ([flag, { kind, description }]) =>
          `complete -c baton -n '__fish_seen_subcommand_from ${name}' -l ${flag}` +
          `${kind === 'switch' ? '' : ' -r'} -d ${quoted(description)}`,
      ),
    ),
    '',
  ].join('\n')

export const completionScripts: Readonly<Record<string, Write>> = { bash, zsh, fish }
