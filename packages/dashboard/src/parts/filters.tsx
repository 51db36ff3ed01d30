interface SearchProps {
  readonly label: string
  readonly placeholder: string
  readonly value: string
  readonly search: (text: string) => void
  /** The text must be exact, so it is searched for when it is complete. */
  readonly isExact?: boolean
}

export function Search({ label, placeholder, value, search, isExact = false }: SearchProps) {
  const take = (event: { readonly currentTarget: HTMLInputElement }) =>
    search(event.currentTarget.value.trim())
  return (
    <label class="search">
      <span class="visually-hidden">{label}</span>
      <input
        type="search"
        placeholder={placeholder}
        value={value}
        {...(isExact ? { onChange: take } : { onInput: take })}
      />
    </label>
  )
}

interface ChoiceProps<Value extends string> {
  readonly label: string
  readonly value: Value | null
  /** The words for no choice, if there may be none. */
  readonly none?: string | undefined
  readonly options: readonly (readonly [value: Value, words: string])[]
  readonly choose: (value: Value | null) => void
}

export function Choice<Value extends string>({ label, value, none, options, choose }: ChoiceProps<Value>) {
  return (
    <select
      aria-label={label}
      value={value ?? ''}
      onChange={(event) => {
        const given = event.currentTarget.value
        choose(options.find(([one]) => one === given)?.[0] ?? null)
      }}
    >
      {none === undefined ? null : <option value="">{none}</option>}
      {options.map(([one, words]) => (
        <option key={one} value={one}>
          {words}
        </option>
      ))}
    </select>
  )
}
