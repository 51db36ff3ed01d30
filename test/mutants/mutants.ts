/** A bug that the tests must find: one change of one source file. */
export interface Mutant {
  readonly area: string
  readonly bug: string
  readonly file: string
  /** Must occur exactly once in the file. */
  readonly from: string
  readonly to: string
  /** Test files of which at least one must fail. */
  readonly tests: readonly string[]
}

const server = 'packages/server/src'
const rules = `${server}/handoff/rules`
const engine = `${server}/handoff/engine`
const store = ['packages/server/test/store/sqlite.test.ts']
const simulation = ['test/simulate/simulate.test.ts']
const http = (...names: string[]) => names.map((name) => `packages/server/test/http/${name}.test.ts`)
const cluster = (...names: string[]) => names.map((name) => `packages/server/test/cluster/${name}.test.ts`)
const disk = (...names: string[]) => names.map((name) => `packages/server/test/disk/${name}.test.ts`)
const webhooks = (...names: string[]) => names.map((name) => `packages/server/test/webhooks/${name}.test.ts`)
const terminal = ['packages/cli/src/terminal.test.ts']
const typescript = ['test/clients/typescript.test.ts']
const python = ['test/clients/python.test.ts']
const protocol = (name: string) => [`packages/protocol/test/${name}.test.ts`]

/** What the same tests must find in one file: the bugs, and for each the text that it replaces and by what. */
function mutantsOf(
  area: string,
  file: string,
  tests: readonly string[],
  bugs: Readonly<Record<string, readonly [from: string, to: string]>>,
): Mutant[] {
  return Object.entries(bugs).map(([bug, [from, to]]) => ({ area, bug, file, from, to, tests }))
}

/** The mutants of `test/simulate` are patches of the engine and the disk while they run; these are all others. */
export const mutants: readonly Mutant[] = [
  ...mutantsOf('rules', `${rules}/policy.ts`, store, {
    'a fencing token may repeat after the clock was set back': ['Math.max(latest + 1, now)', 'now'],
    'a task gets one lease more than its limit': [
      'partitions.leased >= settings.maxLeases',
      'partitions.leased > settings.maxLeases',
    ],
    'a table gets one lease more than its limit': [
      'maxLeases !== null && leases >= maxLeases',
      'maxLeases !== null && leases > maxLeases',
    ],
  }),
  ...mutantsOf('rules', `${rules}/policy.ts`, ['packages/server/test/handoff/policy.test.ts'], {
    'a lease may be longer than twelve hours': [
      'Math.round(Math.min(length, LEASE_MAX_MILLIS))',
      'Math.round(length)',
    ],
  }),
  ...mutantsOf('rules', `${rules}/settlement.ts`, store, {
    'a settled lease can be renewed': [
      "if (isSettled(leaseState.outcome)) return refuse('lease_settled')",
      '',
    ],
    'a superseded lease is not told that it was lost': [
      "return leaseState.taskCancelled ? 'task_cancelled' : 'lease_lost'",
      "return leaseState.taskCancelled ? 'task_cancelled' : 'lease_unknown'",
    ],
    'a lease that an operator revoked can be renewed': [
      "if (leaseState.outcome === 'revoked') return refuse('lease_lost')",
      '',
    ],
    'a late success counts as one more attempt': [
      'late ? Math.max(1, leaseState.attempts) : leaseState.attempts + 1',
      'leaseState.attempts + 1',
    ],
    'a renewal withdraws an attempt that an operator has reset': [
      'Math.max(leaseState.attempts - 1, 0)',
      'leaseState.attempts - 1',
    ],
  }),
  ...mutantsOf('rules', `${rules}/task.ts`, store, {
    'a level whose parked partitions were skipped stays closed': [
      'parkedSkipped ? partitions.parked : 0',
      '0',
    ],
    'a task with parked partitions is stalled although others wait on the level': [
      'holdsBarrier(lane) && unfinishedOf(lane.partitions) === lane.partitions.parked',
      'holdsBarrier(lane)',
    ],
    'a task is done although more of it is to run again': [
      '!cancelled && reruns.length === 0 && unfinishedOf',
      '!cancelled && unfinishedOf',
    ],
    'a task is stalled although more of it is to run again': ['return reruns.length === 0', 'return true'],
    'a paused task whose partitions are done is not done': [
      "if (isDone(task)) return 'done'",
      "if (isDone(task) && !task.paused) return 'done'",
    ],
  }),
  ...mutantsOf('rules', `${rules}/attempts.ts`, store, {
    'an attempt that was renewed after its expiry stays in the history as expired': [
      'history.length === 1 ? null : history.slice(0, -1)',
      'history',
    ],
  }),
  ...mutantsOf('rules', `${rules}/failure-window.ts`, store, {
    'a task pauses itself only above the share of failures, not at it': [
      'failed / of < share',
      'failed / of <= share',
    ],
  }),
  ...mutantsOf('order', `${rules}/fair-order.ts`, simulation, {
    'a task that was idle catches up on what it did not use': [
      'const start = larger(time.virtual, tag)',
      'const start = tag',
    ],
    'tasks take turns by partitions, not by records': ['Math.max(recordCount, 1)', '1'],
  }),
  ...mutantsOf('order', `${engine}/waiting-partitions.ts`, simulation, {
    'a partition that comes back costs nothing': [
      'lane.tag, recordCount,',
      'lane.tag, dueAt === null ? recordCount : 0,',
    ],
  }),
  ...mutantsOf('order', `${engine}/waiting-partitions.ts`, store, {
    'the shares of a level that has drained stay unequal': ['    drain(time)\n', ''],
  }),
  ...mutantsOf('rules', `${rules}/control.ts`, store, {
    'a sealed, finished task can be rerun': ['request.done && task.sealed && isDone(task)', 'false'],
  }),
  ...mutantsOf(
    'engine',
    `${engine}/touched-rows.ts`,
    ['packages/server/test/handoff/engine/restore.test.ts'],
    {
      'the key of a pull that failed is remembered': [
        'for (const [name, key] of this.keys) setOrDelete(memory.keys, name, key)',
        '',
      ],
    },
  ),
  ...mutantsOf('engine', `${engine}/verbs/pull.ts`, store, {
    'a repeated pull returns leases that have expired': ['(partition.dueAt ?? 0) <= tx.now ||', ''],
    'a paused instance gets partitions': [
      'instance !== null && memory.pausedInstances.has(instance)',
      'false',
    ],
    'a pull goes on although its record budget is met': ['takenRecords < records', 'takenRecords <= records'],
  }),
  ...mutantsOf('engine', `${engine}/lease-changes.ts`, store, {
    'a checkpoint survives success': [
      'if (partition.checkpointAt !== null) tx.setCheckpoint(partition, null)',
      '',
    ],
  }),
  ...mutantsOf('engine', `${engine}/verbs/call-back.ts`, http('producers-rights'), {
    'a producer adds to the task of another': [
      'if (task !== undefined && owner !== null && !sharesTask && isOfAnother(task.owners, owner))',
      'if (false)',
    ],
  }),
  ...mutantsOf('engine', `${engine}/verbs/call-back.ts`, store, {
    'an array with a conflict is stored': [
      "if (total > 0) return { kind: 'conflict', conflicts, total }",
      '',
    ],
  }),
  ...mutantsOf(
    'engine',
    `${server}/handoff/maintenance.ts`,
    ['packages/server/test/handoff/maintenance.test.ts'],
    {
      'leases expire at once after a start': [
        'performance.now() + expiryGraceMillis(this.#policy)',
        'performance.now()',
      ],
    },
  ),
  ...mutantsOf('SQLite', `${server}/disk/sqlite/sqlite-connection.ts`, disk('sqlite-fencing'), {
    'a process that was superseded still appends': [
      'this.fence()\n      this.#entries.append',
      'this.#entries.append',
    ],
    'a file that lost its last rows is written to': ['term = ? AND writes = ?', 'term = ? AND writes <= ?'],
  }),
  ...mutantsOf('SQLite', `${server}/disk/sqlite/sqlite-connection.ts`, disk('sqlite-syncing'), {
    'an append is not synced': ["this.#syncing('FULL')", "this.#syncing('NORMAL')"],
  }),
  ...mutantsOf('SQLite', `${server}/disk/sqlite/sqlite-connection.ts`, disk('sqlite'), {
    'a key that an earlier pull has used is accepted': [
      'if (known.length > 0) throw new KnownKeys(known)',
      '',
    ],
  }),
  ...mutantsOf('SQLite', `${server}/disk/sqlite/folder.ts`, disk('sqlite-folder'), {
    'a database of another program is changed': ['this.#refuseForeign(db)\n', '\n'],
  }),
  ...mutantsOf('PostgreSQL', `${server}/disk/postgres/append.ts`, disk('postgres/fencing'), {
    'a deposed leader still appends': ['AND term = $2::text COLLATE "C"', 'AND $2::text IS NOT NULL'],
  }),
  ...mutantsOf(
    'PostgreSQL',
    `${server}/disk/postgres/append.ts`,
    disk('postgres/fencing', 'postgres/lost-tail'),
    {
      'an append does not notice that written rows were lost': [
        'WHERE writes >= $4)',
        'WHERE $4 IS NOT NULL)',
      ],
    },
  ),
  ...mutantsOf('PostgreSQL', `${server}/disk/postgres/append.ts`, disk('postgres/doubt'), {
    'a role or database that commits asynchronously loses acknowledged work': [
      "set_config('synchronous_commit', 'on', true) IS NOT NULL",
      'true',
    ],
    'an append that its standby did not confirm is acknowledged': ['connection.warnings > warnings', 'false'],
  }),
  ...mutantsOf(
    'PostgreSQL',
    `${server}/disk/postgres/leader-row.ts`,
    disk('postgres/fencing', 'postgres/lost-tail'),
    {
      'rows are written on a database that lacks the last entry': ['  entryFence(term, last),\n', ''],
    },
  ),
  ...mutantsOf('PostgreSQL', `${server}/disk/postgres/conditions.ts`, disk('postgres'), {
    'a pull of one table gets others of a lane': [
      'WHERE in_mixed_lane AND compute_table = ?',
      'WHERE in_mixed_lane AND compute_table >= ?',
    ],
    'the next page of tasks in a state begins with the last of the page before': [
      '(state, id) < (?1, ?2)',
      '(state, id) <= (?1, ?2)',
    ],
    'what is parked for one reason includes what is parked for others': [
      'WHERE parked_as = ?',
      'WHERE parked_as >= ?',
    ],
  }),
  ...mutantsOf('cluster', `${server}/cluster/peer-signature.ts`, cluster('peer-signature'), {
    'a request of another node is accepted at any later time': [
      'Math.abs(this.now - signed.time) > FRESH_MILLIS',
      'false',
    ],
    'a request of another node is accepted twice': ['if (!(number > (sender', 'if (!(number >= (sender'],
  }),
  ...mutantsOf('cluster', `${server}/cluster/leader-link.ts`, cluster('forged-requests'), {
    'an old answer proves that a node leads': ['hello.nonce === nonce', 'true'],
  }),
  ...mutantsOf('cluster', `${server}/http/forwarding.ts`, cluster('forged-requests'), {
    'a forwarded request on the fast path may have another body than was signed': [
      'digestOf(body) !== admitted.digest',
      'false',
    ],
  }),
  ...mutantsOf('cluster', `${server}/cluster/leader-link.ts`, cluster('forwarding', 'leadership'), {
    'a request that may have been carried out is carried out again': [
      'else reject(lost(error))',
      'else resolve(this.#unsent(error))',
    ],
  }),
  ...mutantsOf('cluster', `${server}/cluster/leadership.ts`, cluster('stopping'), {
    'a node that is stopped while it reads the leader row follows that leader': [
      '    while (!this.#stopping.signal.aborted) {\n      const callbacks',
      '    while (true) {\n      const callbacks',
    ],
  }),
  ...mutantsOf('cluster', `${server}/cluster/forwarder.ts`, cluster('forged-requests'), {
    'a node serves a request that was signed for another node': [
      'admitted.to !== this.#signature.nodeId || ',
      '',
    ],
  }),
  ...mutantsOf('admission', `${server}/http/admission/admission.ts`, http('tokens', 'token-limits'), {
    'a token of some tasks sees what concerns all tasks': ['needsAll && token.tasks !== null', 'false'],
  }),
  ...mutantsOf('admission', `${server}/http/admission/browser-defence.ts`, http('browser-defence'), {
    'a page of another site makes a browser pull': ["headers['sec-fetch-mode'] === 'navigate'", 'false'],
    'a page of another site makes an old browser pull or cancel': [
      'referer !== undefined && !isOwnAddress(referer, headers.host, hosts)',
      'false',
    ],
  }),
  ...mutantsOf('admission', `${server}/http/admission/admission.ts`, http('browser-defence', 'wire'), {
    'a request may have two Host headers': ['rawHeaders.filter(isHost).length > 1', 'false'],
  }),
  ...mutantsOf('admission', `${server}/http/admission/proxies.ts`, http('proxies'), {
    'anyone can claim an address with X-Forwarded-For': [
      'if (address === null || !this.isTrusted(address)) return address',
      'if (address === null) return address',
    ],
  }),
  ...mutantsOf('admission', `${server}/http/admission/token-limits.ts`, http('producers-rights'), {
    'a producer controls a task to which it only added': [
      'owners[0] === token.name',
      'owners.includes(token.name)',
    ],
    'a producer takes the share of others with a weight': ['(weight ?? 1) <= token.maxWeight', 'true'],
    'a producer takes the level of others': ['first.level < token.lowestLevel', 'false'],
  }),
  ...mutantsOf('admission', `${server}/http/admission/token-limits.ts`, http('worker-limits'), {
    'a repeated pull hands out tables that the token may no longer see': [
      'partitions.filter(({ computeTableName }) => allowed.includes(computeTableName))',
      'partitions',
    ],
  }),
  ...mutantsOf('admission', `${server}/handoff/engine/state/owned-work.ts`, http('producers-rights'), {
    'a producer may have any number of open tasks': ['opensTask && counted.tasks >= openTasks', 'false'],
    'a producer may have any number of waiting partitions': [
      'counted.waiting + partitions > waitingPartitions',
      'false',
    ],
  }),
  ...mutantsOf(
    'limits',
    `${server}/http/limits/wait-quota.ts`,
    http('admission-parts', 'hostile-connections'),
    {
      'a client gets one waiting pull more than its share': [
        'share.pulls >= waitingPullsPerCaller',
        'share.pulls > waitingPullsPerCaller',
      ],
    },
  ),
  ...mutantsOf('limits', `${server}/http/limits/limiter.ts`, http('admission-parts'), {
    'one slow iteration of the event loop counts as overload': [
      'Math.min(...this.#late)',
      'Math.max(...this.#late)',
    ],
  }),
  ...mutantsOf(
    'limits',
    `${server}/http/limits/received-bytes.ts`,
    http('bodies', 'hostile-bodies', 'admission-parts'),
    {
      'bodies may use more memory than is allowed': [
        'return this.#held <= limit || this.#makeRoom(body, limit)',
        'return true',
      ],
    },
  ),
  ...mutantsOf('limits', `${server}/http/requests/paced-reading.ts`, http('paced-reading'), {
    'pipelined requests of a connection are parsed all at once': [
      'this.#isBlocked || !this.#mayReadOn',
      'this.#isBlocked',
    ],
    'over TLS, pipelined requests of a connection are parsed all at once': [
      "server.on(isSecure ? 'secureConnection' : 'connection', (",
      "if (!isSecure) server.on('connection', (",
    ],
    'what follows other requests is parsed in each iteration of the event loop': [
      'this.#pace.add(this, this.#isInBody)',
      'this.#pace.add(this, true)',
    ],
    'what waits is copied together with what arrives meanwhile, for each piece': [
      'this.#socket.read(this.#waitingBytes)',
      'this.#socket.read()',
    ],
  }),
  ...mutantsOf('limits', `${server}/http/requests/paced-reading.ts`, http('time-slicer'), {
    'queries of thousands of pulls are parsed in one iteration of the event loop': [
      '(most <= 0 || !bytes.subarray(0, most).includes(HEAD_END))',
      'false',
    ],
    'a long head is not noticed if it arrives in pieces': ['this.#headBytes + piece.length', '0'],
  }),
  ...mutantsOf('limits', `${server}/http/fast-path/connection.ts`, http('time-slicer'), {
    'connections that begin with much all come to Node in one iteration of the event loop': [
      'if (!isBulk) {',
      'if (true) {',
    ],
    'any number of connections that begin with much waits': [
      'this.#rules.slicer.waitingBeside(this.#socket) >= MOST_BULK_WAITING',
      'false',
    ],
  }),
  ...mutantsOf('limits', `${server}/http/limits/connections.ts`, http('time-slicer'), {
    'any number of refused connections stays open until they have read why': [
      'this.#lingering >= MOST_LINGERING',
      'false',
    ],
  }),
  ...mutantsOf('limits', `${server}/http/limits/wait-quota.ts`, http('hostile-connections'), {
    'queries of waiting pulls may use more memory than is allowed': [
      'bytes > 0 && held + bytes > most',
      'false',
    ],
  }),
  ...mutantsOf('limits', `${server}/http/requests/read-scheduler.ts`, http('read-scheduler'), {
    'lists are read for clients that have hung up': [
      'if (this.#waitingReads > MOST_OF_CLOSED || !this.#hasRoomFor(caller)) waiting.gone()',
      '',
    ],
  }),
  ...mutantsOf('limits', `${server}/http/listening.ts`, http('listening'), {
    'an iteration of the event loop accepts one connection': ['const SOCKETS = 32', 'const SOCKETS = 1'],
  }),
  ...mutantsOf('limits', 'packages/protocol/src/schemas/call-back.ts', http('hostile-bodies'), {
    'a call-back may have any number of levels': [
      'if (this.#levelsExceeded || this.#positions.size <= this.#maxLevels) return',
      'return',
    ],
  }),
  ...mutantsOf('limits', `${server}/http/answers/problems.ts`, http('wire'), {
    'a refused client that still sends gets a reset instead of the answer': [
      'lingerUntilSent(reply.request.raw)',
      '',
    ],
  }),
  ...mutantsOf('limits', `${server}/http/tls.ts`, http('tls'), {
    'plain HTTP on the port of TLS is not answered': ['first !== null && isLetter(first[0] ?? 0)', 'false'],
  }),
  ...mutantsOf('http', `${server}/http/routes/worker-routes.ts`, http('hang-up'), {
    'a client that hung up keeps its leases': ['if (request.key === null) handOff.undo(partitions)', ''],
  }),
  ...mutantsOf('webhooks', `${server}/webhooks/address-rule.ts`, webhooks('address-rule', 'posting'), {
    'a name that resolves to an internal address is posted to': [
      'found.filter(({ address }) => this.allows(address))',
      'found',
    ],
  }),
  ...mutantsOf('webhooks', `${server}/webhooks/signed-event.ts`, webhooks('deliveries'), {
    'the time is not signed': [`\${timestamp}.\${body}`, `\${body}`],
  }),
  ...mutantsOf('webhooks', `${server}/webhooks/posting.ts`, webhooks('posting'), {
    'a redirect counts as delivered': [
      'statusCode >= 200 && statusCode < 300',
      'statusCode >= 200 && statusCode < 400',
    ],
  }),
  ...mutantsOf('webhooks', `${server}/webhooks/target.ts`, webhooks('target'), {
    'a later event of a task overtakes one that waits for its retry': [
      'if (current !== undefined) current.skippedTo = Math.max(current.skippedTo, event)',
      'if (false) return undefined',
    ],
  }),
  ...mutantsOf('webhooks', `${server}/webhooks/target.ts`, webhooks('target', 'deliveries'), {
    'the pause that a receiver asks for is ignored': [
      'this.#retrySchedule.afterAttempt(attempts), retryAfterMillis ?? 0',
      'this.#retrySchedule.afterAttempt(attempts), 0',
    ],
  }),
  ...mutantsOf('webhooks', `${server}/webhooks/deliverer.ts`, webhooks('deliveries'), {
    'receivers that hang delay all others': [
      '!isOwn && shared >= MOST_SHARED',
      'this.#underWay.size >= MOST_SHARED',
    ],
  }),
  ...mutantsOf('client', 'packages/client/src/lease-keeper.ts', typescript, {
    'a lease is renewed when hardly any of it is left': [
      '(this.#lengthMillis * 2) / 3',
      'this.#lengthMillis / 30',
    ],
  }),
  ...mutantsOf('client', 'packages/client/src/retry.ts', typescript, {
    'an error that a retry cannot fix is retried': ['!error.retryable || signal', 'signal'],
  }),
  ...mutantsOf('client', 'packages/client/src/hand-off-loop.ts', typescript, {
    'what a worker that stops was about to be given is lost to others until it expires': [
      'if (this.#closing.signal.aborted) await this.#reclaim(idempotencyKey)',
      'if (this.#closing.signal.aborted) return',
    ],
  }),
  ...mutantsOf('client', 'packages/client/src/producer.ts', typescript, {
    'a long call-back seals its task with its first request': [
      'isLast ? this.#options : { ...this.#options, seal: undefined }',
      'this.#options',
    ],
  }),
  ...mutantsOf('client', 'packages/client/src/base-urls.ts', typescript, {
    'a node behind a proxy that answers 502 is asked again instead of another node': [
      'error.status >= 502 && error.status <= 504',
      'false',
    ],
    'a leader that does not know the token is asked again and again': [
      'status === 401 || status === 403',
      'status === 403',
    ],
  }),
  ...mutantsOf('command', 'packages/cli/src/terminal.ts', terminal, {
    'a name reverses the text behind it in the terminal': ['\\p{Bidi_Control}', ''],
    'an 8-bit control sequence in a name reaches the terminal': ['\\p{Cc}', '\\u0000-\\u001f'],
  }),
  ...mutantsOf('Python client', 'clients/python/src/baton_client/lease_keeper.py', python, {
    'a lease is renewed when hardly any of it is left': ['self._seconds * 2 / 3', 'self._seconds / 30'],
  }),
  ...mutantsOf('Python client', 'clients/python/src/baton_client/outcome.py', python, {
    'a handler that was aborted fails its partition': ['if was_aborted else', 'if False else'],
  }),
  ...mutantsOf('Python client', 'clients/python/src/baton_client/contract.py', python, {
    'levels need not ascend': ['if level < previous:', 'if level < 0:'],
  }),
  ...mutantsOf('Python client', 'clients/python/src/baton_client/producer.py', python, {
    'a long call-back seals its task with its first request': [
      'self._seal if is_last else None',
      'self._seal',
    ],
  }),
  ...mutantsOf('protocol', 'packages/protocol/src/schemas/call-back.ts', protocol('call-back'), {
    'levels need not ascend': ['if (level < previous)', 'if (level < 0)'],
    'the group in a name need not be the level': ['parsed.level !== level', 'false'],
    'the records of an array may add up to an inexact number': [
      'if (this.#recordTotal <= Number.MAX_SAFE_INTEGER) return',
      'return',
    ],
  }),
  ...mutantsOf('protocol', 'packages/protocol/src/exact-json.ts', protocol('exact-json'), {
    'a number with a fraction is rounded to an integer': ['return behind > 0 &&', 'return behind > 1 &&'],
  }),
  ...mutantsOf('protocol', 'packages/protocol/src/preferences.ts', protocol('preferences'), {
    'a preference may exceed its maximum': ['Math.min(number, most)', 'number'],
  }),
  ...mutantsOf('protocol', 'packages/protocol/src/identifiers.ts', protocol('partition-name'), {
    'two spellings of an index are two partitions': [
      '!hasLeadingZero(name, groupStart, groupEnd) && !hasLeadingZero(name, indexStart, name.length)',
      'true',
    ],
  }),
]
