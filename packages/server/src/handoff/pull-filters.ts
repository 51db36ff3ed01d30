import { SetsByKey } from './sets-by-key.ts'
import type { BatchedPull, NewlyReadyOf } from './store.ts'

export type Filter = Pick<BatchedPull, 'tables' | 'tasks'>

export const isUnfiltered = ({ tables, tasks }: Filter): boolean => tables === null && tasks === null

/** How many of the newly ready partitions match. All, if their tasks and tables are unknown. */
export function wantedOf(
  filter: Filter,
  newlyReady: number,
  newlyReadyOf: readonly NewlyReadyOf[] | null,
): number {
  if (newlyReadyOf === null || isUnfiltered(filter)) return newlyReady
  const { tasks } = filter
  let wanted = 0
  for (const [task, table, count] of newlyReadyOf)
    if ((tasks === null || task === null || tasks.includes(task)) && hasTable(filter, table)) wanted += count
  return wanted
}

const hasTable = ({ tables }: Filter, table: string | null) =>
  tables === null || table === null || tables.includes(table)

/** The members that have the same filter. */
export interface Group<Member> {
  readonly name: string
  readonly filter: Filter
  readonly members: Set<Member>
}

/** Finds groups by the names in their filters: thousands of other filters cost a notification nothing. */
export class FilterGroups<Member> {
  readonly #groups = new Map<string, Group<Member>>()
  readonly #byTask = new SetsByKey<string, Group<Member>>()
  /** Groups without tasks in their filter. */
  readonly #byTable = new SetsByKey<string, Group<Member>>()

  add(filter: Filter, member: Member): Group<Member> {
    const name = isUnfiltered(filter) ? '' : JSON.stringify([filter.tables, filter.tasks])
    const known = this.#groups.get(name)
    if (known !== undefined) {
      known.members.add(member)
      return known
    }
    const group = { name, filter, members: new Set([member]) }
    this.#groups.set(name, group)
    const [index, names] = this.#indexOf(filter)
    for (const each of names) index.add(each, group)
    return group
  }

  remove(group: Group<Member>, member: Member): void {
    group.members.delete(member)
    if (group.members.size > 0 || this.#groups.get(group.name) !== group) return
    this.#groups.delete(group.name)
    const [index, names] = this.#indexOf(group.filter)
    for (const each of names) index.remove(each, group)
  }

  /** The groups that match newly ready partitions, and how many of those partitions each may get. */
  wanting(newlyReady: number, newlyReadyOf: readonly NewlyReadyOf[] | null): Map<Group<Member>, number> {
    const wanted = new Map<Group<Member>, number>()
    if (newlyReadyOf === null) {
      for (const group of this.#groups.values()) wanted.set(group, newlyReady)
      return wanted
    }
    const unfiltered = this.#groups.get('')
    if (unfiltered !== undefined) wanted.set(unfiltered, newlyReady)
    const add = (group: Group<Member>, count: number) => wanted.set(group, (wanted.get(group) ?? 0) + count)
    for (const [task, table, count] of newlyReadyOf) {
      for (const group of this.#ofTask(task)) if (hasTable(group.filter, table)) add(group, count)
      for (const group of this.#ofTable(table)) add(group, count)
    }
    return wanted
  }

  #ofTask(task: string | null): Iterable<Group<Member>> {
    if (task !== null) return this.#byTask.get(task) ?? []
    return [...this.#groups.values()].filter(({ filter }) => filter.tasks !== null)
  }

  #ofTable(table: string | null): Iterable<Group<Member>> {
    if (table !== null) return this.#byTable.get(table) ?? []
    return [...this.#groups.values()].filter(({ filter }) => filter.tasks === null && filter.tables !== null)
  }

  #indexOf({ tables, tasks }: Filter): [SetsByKey<string, Group<Member>>, readonly string[]] {
    return tasks === null ? [this.#byTable, tables ?? []] : [this.#byTask, tasks]
  }
}
