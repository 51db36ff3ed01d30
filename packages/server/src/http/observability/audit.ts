import type { nodeAuditKinds } from '@baton/protocol'
import type { onSendHookHandler } from 'fastify'
import type { Log } from '../../handoff/log.ts'
import type { FileReload } from '../../settings-files.ts'
import type { AccessRule } from '../admission/access.ts'
import type { Proxies } from '../admission/proxies.ts'
import type { TokenLookup } from '../admission/tokens.ts'
import { sentProblemOf } from '../answers/problems.ts'

// What only the log and this node's memory have: a flood of refused tokens must not write. Changes are in the
// store; see handoff/audit.ts.

/** Reloads and refusals have limits of their own, so that a flood of refusals evicts no reload. */
const MOST_KEPT = 1000
const MOST_REFUSALS_KEPT = 1000
/** Refusals within this time, from the same address and for the same reason, are merged into one entry. */
const TOGETHER_MILLIS = 60_000
/** Log lines about refusals. Further ones are only counted in the entries. */
const MOST_LINES_A_MINUTE = 60

interface Audited {
  /** `control`: a control request. It is only logged. */
  readonly kind: (typeof nodeAuditKinds)[number] | 'control'
  readonly name: string | null
  readonly address: string | null
  readonly action: string
  readonly outcome: string
  readonly detail: string | null
}

interface NodeAudited extends Audited {
  readonly kind: (typeof nodeAuditKinds)[number]
}

interface NodeRecord extends NodeAudited {
  /** Increases with each entry; used as the cursor. */
  readonly number: number
  readonly at: number
  readonly times: number
}

/** Refused tokens and reloaded files since the start. Each is also logged: a stop loses the entries. */
export class AuditLog {
  readonly #log: Log
  readonly #now: () => number
  readonly #kept: NodeRecord[] = []
  readonly #refusals: NodeRecord[] = []
  #last = 0
  #lines = { minute: Number.NaN, written: 0, leftOut: 0 }

  constructor(log: Log, now: () => number = Date.now) {
    this.#log = log
    this.#now = now
  }

  note(audited: Audited): void {
    const at = this.#now()
    const { kind } = audited
    if (kind === 'refused') this.#noteRefusal({ ...audited, kind }, at)
    else {
      if (kind === 'reload') this.#add(this.#kept, MOST_KEPT, { ...audited, kind }, at)
      this.#write(audited)
    }
  }

  page(before: number | null, limit: number): { entries: readonly NodeRecord[]; next: number | null } {
    const found = [...this.#kept, ...this.#refusals]
      .filter(({ number }) => before === null || number < before)
      .toSorted((one, other) => other.number - one.number)
    const entries = found.slice(0, limit)
    return { entries, next: found.length > limit ? (entries.at(-1)?.number ?? null) : null }
  }

  #noteRefusal(audited: NodeAudited, at: number): void {
    const together = this.#refusals.findLastIndex(
      (known) => known.address === audited.address && at - known.at < TOGETHER_MILLIS,
    )
    const known = this.#refusals[together]
    if (known !== undefined && isAlike(known, audited))
      this.#refusals[together] = { ...known, ...audited, at, times: known.times + 1 }
    else this.#add(this.#refusals, MOST_REFUSALS_KEPT, audited, at)
    const minute = Math.floor(at / 60_000)
    if (this.#lines.minute !== minute) {
      if (this.#lines.leftOut > 0)
        this.#log.warn(
          { audit: true, leftOut: this.#lines.leftOut },
          'further refused tokens were not logged',
        )
      this.#lines = { minute, written: 0, leftOut: 0 }
    }
    if (this.#lines.written < MOST_LINES_A_MINUTE) this.#write(audited)
    else this.#lines.leftOut += 1
    this.#lines.written += 1
  }

  #add(kept: NodeRecord[], most: number, audited: NodeAudited, at: number): void {
    this.#last += 1
    kept.push({ ...audited, number: this.#last, at, times: 1 })
    if (kept.length > most) kept.shift()
  }

  #write({ detail, ...others }: Audited): void {
    const fields = { audit: true, ...others, ...(detail === null ? {} : { detail }) }
    if (others.kind === 'refused') this.#log.warn(fields, 'audit: a token was refused')
    else if (others.kind === 'control') this.#log.info(fields, 'audit: a control request')
    else this.#log.info(fields, 'audit: a file was reloaded')
  }
}

const isAlike = (one: Audited, other: Audited): boolean =>
  one.outcome === other.outcome && one.name === other.name

interface Reloaded {
  onReload(listener: (reload: FileReload<unknown>) => void): void
}

export function auditReloads(audit: AuditLog, files: Readonly<Record<string, Reloaded | null>>): void {
  for (const [action, file] of Object.entries(files))
    file?.onReload(({ outcome, detail }) =>
      audit.note({ kind: 'reload', name: null, address: null, action, outcome, detail }),
    )
}

const refusing: ReadonlySet<string> = new Set(['token_unknown', 'token_refused', 'token_limited'])
/** Task ids in the path may be long. */
const LONGEST_ACTION = 300

export interface AuditRules {
  readonly audit: AuditLog
  readonly tokens: TokenLookup
  readonly proxies: Proxies
}

/** Without a token there is no attempt to log in, so such requests are not recorded. */
export function auditing({ effect }: AccessRule, { audit, tokens, proxies }: AuditRules): onSendHookHandler {
  return ({ raw }, reply, payload, done) => {
    const problem = sentProblemOf(reply)
    const isRefused = problem !== undefined && refusing.has(problem.code)
    if (isRefused || (effect === 'control' && problem?.code !== 'token_missing'))
      audit.note({
        kind: isRefused ? 'refused' : 'control',
        name: tokens.nameOf(raw.headers),
        address: proxies.addressOf(raw.socket, raw.headers),
        action: `${raw.method} ${shortPath(raw.url?.split('?', 1)[0] ?? '')}`,
        outcome: problem?.code ?? 'done',
        detail: problem?.detail ?? null,
      })
    done(null, payload)
  }
}

function shortPath(path: string): string {
  return path.length > LONGEST_ACTION ? `${path.slice(0, LONGEST_ACTION)}…` : path
}
