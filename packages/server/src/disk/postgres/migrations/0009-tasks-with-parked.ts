/** Tasks that somebody has to see to are found without a walk over all others. Of a cancelled one nothing counts as parked. */
export const tasksWithParked = `
CREATE INDEX task_with_parked ON baton.task (id) WHERE parked_partitions > 0 AND NOT cancelled;
`
