import type { Log } from '../handoff/log.ts'
import type { DefinedSubscription } from '../handoff/outbox.ts'
import { type FileReload, ReloadedFile } from '../reloaded-file.ts'
import { readSubscriptionsFile, type SubscriptionsFileOptions } from './subscriptions-file.ts'

/**
 * The current subscriptions of the file. If a changed file is invalid, the previous subscriptions stay in
 * force.
 */
export type LiveSubscriptions = ReloadedFile<readonly DefinedSubscription[]>

export function openSubscriptionsFile(
  path: string,
  options: SubscriptionsFileOptions & { readonly log: Log },
): LiveSubscriptions {
  return new ReloadedFile({
    path,
    read: (_before, reads) => readSubscriptionsFile(path, options, reads),
    refusal: 'the subscriptions file changed and cannot be used: the previous subscriptions stay in force',
    log: options.log,
  })
}

/** The names of the subscriptions that a reload changed. */
export function subscriptionsDetail(reload: FileReload<readonly DefinedSubscription[]>): string {
  if (reload.outcome === 'refused') return reload.faults.join('; ')
  const before = new Map(reload.before.map((one) => [one.name, JSON.stringify(one)]))
  const now = new Map(reload.now.map((one) => [one.name, JSON.stringify(one)]))
  const named = (word: string, names: readonly string[]) =>
    names.length === 0 ? [] : [`${word}: ${names.join(', ')}`]
  const parts = [
    ...named(
      'new',
      [...now.keys()].filter((name) => !before.has(name)),
    ),
    ...named(
      'removed',
      [...before.keys()].filter((name) => !now.has(name)),
    ),
    ...named(
      'changed',
      [...now.keys()].filter((name) => before.has(name) && before.get(name) !== now.get(name)),
    ),
  ]
  return parts.length === 0 ? 'no subscription changed' : parts.join('; ')
}
