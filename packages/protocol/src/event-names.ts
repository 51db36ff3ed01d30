/** The names of the events on the stream; a task is told of at most a few times a second, however fast it moves. */
export const eventNames = ['task', 'parked', 'instance', 'reset'] as const
export type EventName = (typeof eventNames)[number]
