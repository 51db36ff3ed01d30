import { type Role, roles } from './tokens.ts'

/** Kinds of requests, in the order in which an overloaded node sheds them. */
export const sheddingOrder = ['call-back', 'view', 'pull', 'urgent'] as const
export type Urgency = (typeof sheddingOrder)[number]

/** Everything that depends on who a route is for. */
export interface AccessRule {
  /** A token needs one of these roles. Null: no token is needed. */
  readonly roles: readonly Role[] | null
  /** `hand-off` and `control` are refused from pages of other sites. Only `control` is audited. */
  readonly effect: 'read' | 'hand-off' | 'control'
  /**
   * What happens to a token that is limited to some tasks. `all`: the route concerns all tasks, so admission
   * refuses the token. `one`: the route concerns one task, which admission does not know. The route refuses a
   * token that does not cover it, with `requireTaskLimit` or `requireCallBackLimits`. `covered`: the route
   * leaves out what the token does not cover.
   */
  readonly tasks: 'all' | 'one' | 'covered'
  /** When an overloaded node sheds it. Control is urgent, because it may resolve the overload. */
  readonly urgency: Urgency
  /** Who the operation is for. The API reference groups operations by this. */
  readonly actor: 'producer' | 'worker' | 'operator' | 'anyone'
}

const viewers = ['operator', 'viewer'] as const
const withProducer = ['operator', 'producer'] as const

/** Every route names its row in `config.access`. */
export const accessRules = {
  'call-back': {
    roles: ['producer'],
    effect: 'hand-off',
    tasks: 'one',
    urgency: 'call-back',
    actor: 'producer',
  },
  pull: { roles: ['worker'], effect: 'hand-off', tasks: 'covered', urgency: 'pull', actor: 'worker' },
  worker: { roles: ['worker'], effect: 'hand-off', tasks: 'covered', urgency: 'urgent', actor: 'worker' },
  open: { roles: null, effect: 'read', tasks: 'covered', urgency: 'view', actor: 'anyone' },
  anyone: { roles, effect: 'read', tasks: 'covered', urgency: 'view', actor: 'anyone' },
  view: { roles: viewers, effect: 'read', tasks: 'covered', urgency: 'view', actor: 'operator' },
  overview: { roles: viewers, effect: 'read', tasks: 'all', urgency: 'view', actor: 'operator' },
  metrics: { roles: viewers, effect: 'read', tasks: 'all', urgency: 'urgent', actor: 'operator' },
  task: { roles: [...viewers, 'producer'], effect: 'read', tasks: 'one', urgency: 'view', actor: 'operator' },
  audit: { roles: ['operator'], effect: 'read', tasks: 'all', urgency: 'view', actor: 'operator' },
  operator: { roles: ['operator'], effect: 'control', tasks: 'one', urgency: 'urgent', actor: 'operator' },
  fleet: { roles: ['operator'], effect: 'control', tasks: 'all', urgency: 'urgent', actor: 'operator' },
  seal: { roles: withProducer, effect: 'control', tasks: 'one', urgency: 'urgent', actor: 'operator' },
  settings: { roles: withProducer, effect: 'control', tasks: 'one', urgency: 'urgent', actor: 'producer' },
} as const satisfies Record<string, AccessRule>

export type CheckedAccess = keyof typeof accessRules
/** Probes have no row: they are not checked at all. */
export type Access = CheckedAccess | 'probe'

/** Undefined for probes, and for requests without a route. */
export function accessRule(access: Access | undefined): AccessRule | undefined {
  return access === undefined || access === 'probe' ? undefined : accessRules[access]
}
