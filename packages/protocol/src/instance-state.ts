export const instanceRoles = ['service', 'worker', 'producer'] as const
export type InstanceRole = (typeof instanceRoles)[number]

export const instanceStates = ['up', 'draining', 'down'] as const
export type InstanceState = (typeof instanceStates)[number]
