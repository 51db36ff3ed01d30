export const instanceRoles = ['service', 'worker', 'producer'] as const
export type InstanceRole = (typeof instanceRoles)[number]

/** Silent and lost: it holds leases and has not been heard from, for half of their length and for most of it. */
export const instanceStates = ['up', 'silent', 'lost', 'draining', 'down'] as const
export type InstanceState = (typeof instanceStates)[number]
