/** How the service handles fields of a descriptor that are not in the contract. */
export const unknownFieldRules = ['refuse', 'ignore', 'keep'] as const
export type UnknownFields = (typeof unknownFieldRules)[number]
