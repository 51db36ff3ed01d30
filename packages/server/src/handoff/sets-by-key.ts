/** Sets of members by key. A key whose last member is removed is removed, too. */
export class SetsByKey<Key, Member> extends Map<Key, Set<Member>> {
  add(key: Key, member: Member): void {
    let members = this.get(key)
    if (members === undefined) {
      members = new Set()
      this.set(key, members)
    }
    members.add(member)
  }

  /** Returns whether it was a member. */
  remove(key: Key, member: Member): boolean {
    const members = this.get(key)
    if (members === undefined || !members.delete(member)) return false
    if (members.size === 0) this.delete(key)
    return true
  }
}
