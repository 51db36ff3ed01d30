/** What an operation does, where its summary does not say it all. By operation id. */
export const operationDescriptions: Readonly<Record<string, string>> = {
  callBack:
    'Stores all partitions of the array or none. Repeating the request is safe: partitions that are known count as duplicates. The task comes into being with its first call-back.',
  pull: 'Hands out the partitions that are next, lowest level first, each under a lease. Settle a lease when its partition is processed, and renew it while that takes longer than the lease. A partition whose lease expires is handed out again.',
  settle:
    'Ends leases as done, failed or released. The answer lists the leases that could not be settled. With a preference or a query it also pulls, which saves a request for each partition.',
  renew: 'Extends leases to their full length from now on. The answer lists the leases that were lost.',
  instanceStatus: 'Describes a node, a worker or a producer; without a name, the node that answers.',
  listInstances: 'Lists nodes, workers and producers. Filters can be combined.',
  listInstanceLeases:
    'Lists the leases that run, of tasks that the token covers. Lease ids are secrets and not shown.',
  listInstanceAttempts:
    'Lists the last attempts that ended, with their outcome. They are kept in memory: a new leader starts without them.',
  pauseInstance:
    'Hands out nothing to the instance until it is resumed, and tells it so. Its leases run on. The pause is stored, and the instance is not forgotten meanwhile.',
  releasePartition:
    'Revokes the lease of one partition, for a worker that hangs. An attempt is used; the partition is ready at once, or parked if that was its last. The old lease cannot be renewed.',
  releaseInstance:
    'Revokes all leases of an instance, for a worker that will not come back. Its partitions are ready at once.',
  listTables:
    'Lists the compute tables that have waiting, delayed or leased partitions, or settings, by name. Numbers are over all tasks.',
  viewTableSettings:
    'Shows the settings of a compute table. One that was never called back has the defaults.',
  changeTableSettings:
    'Changes what the body names; null restores the default. While `maxLeases` leases or more run on the table, over all tasks, nothing of it is handed out and no expired lease is revived; leases that run go on. While it is paused, nothing of it is handed out. A table may get settings before it is first called back.',
  listTasks: 'Lists tasks, newest first, with their progress. Filters can be combined.',
  viewTask: 'Shows the progress of a task by level, its pace, its time left and what is wrong with it.',
  viewTotals: 'Adds up the counters of all unfinished tasks. The sums may be some seconds old.',
  viewScale:
    'Estimates how many workers would finish the backlog within the target at the measured pace. With a token that is limited to some tasks, the backlog of these tasks.',
  viewThroughputOfAll:
    'Shows what all tasks together have processed by minute or by hour. Minutes are kept for a day.',
  exportManifest: 'Streams all partitions of a task as lines of JSON, to compare with what was computed.',
  pause: 'Stops handing out partitions of the task. Leases that run go on, and call-backs are stored.',
  cancel:
    'Ends a task: no partition is handed out any more, and leases that run are refused at their next request.',
  skipParked: 'Opens the next level although partitions of this one are parked.',
  retry: 'Makes parked partitions ready again, with all their attempts; with `done`, also finished ones.',
  seal: 'Declares that no more partitions will come. When all are done, the task is done for good.',
  owner: 'Gives the task to another token name, whose producers may then change it.',
  settings:
    'Shows lease length, attempts, back-off, most leases and weight of a task, and which are its own.',
  changeSettings:
    'Changes the named settings of a task, also before its first call-back. A setting that is null goes back to the value of the service.',
  subscribe:
    'Sends events to a URL, signed with a secret that only this answer contains. Without a URL the events are kept to be read.',
  rotateSecret: 'Replaces the secret. For some time events are signed with both.',
  enableSubscription:
    'Sends events again after the receiver answered 410. What was pending then is sent, too.',
  listDeliveries: 'Shows what was sent to a receiver, with its answers.',
  redeliver: 'Sends one event again, also if it was delivered.',
  readEvents: 'Reads the events of a subscription, without a receiver. Pass `next` as `after` to go on.',
  whoami:
    'Shows with which name and roles the service sees the sender. Without tokens there is no name, and all roles.',
  livez: 'Answers as long as the process runs. Needs no token.',
  readyz: 'Answers 200 if this node can hand off, for load balancers. Needs no token.',
  metrics: 'Answers in the text format of Prometheus, also while the store is unavailable.',
}
