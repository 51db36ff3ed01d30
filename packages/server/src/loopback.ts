/** Names and addresses that lead back to the machine itself, with no port. IPv6 with or without brackets. */
export function isLoopback(host: string): boolean {
  const name = host.toLowerCase()
  if (name === 'localhost' || name.endsWith('.localhost')) return true
  if (name === '[::1]' || name === '::1') return true
  return /^127(?:\.(?:25[0-5]|2[0-4]\d|1?\d?\d)){3}$/.test(name)
}
