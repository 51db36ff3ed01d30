/** Names and addresses that lead back to the machine itself, with no port. IPv6 with or without brackets. */
export function isLoopback(host: string): boolean {
  const name = host.toLowerCase()
  if (name === 'localhost' || name.endsWith('.localhost')) return true
  if (name === '[::1]' || name === '::1') return true
  return /^127(?:\.(?:25[0-5]|2[0-4]\d|1?\d?\d)){3}$/.test(name)
}

/** Listens on every address of the machine, and is none by which others reach it. */
export const isWildcard = (host: string): boolean =>
  ['0.0.0.0', '::', '[::]', '*'].includes(host) || /^[0:]+$/.test(host)
