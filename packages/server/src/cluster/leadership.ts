import { setTimeout as sleep } from 'node:timers/promises'
import { withTimeout } from '../handoff/clock.ts'
import type { SharedDisk } from '../handoff/disk.ts'
import type { Log } from '../handoff/log.ts'
import { LeaderUnavailable, type Store, StoreUnavailable } from '../handoff/store.ts'
import type { ClusterNode, LeaderRow } from '../handoff/stored.ts'
import { AwaitedLeader } from './awaited-leader.ts'
import type { Followers } from './followers.ts'
import type { LeaderClock } from './leader-clock.ts'
import { isLed, LeaderLink, type LedRow, type LinkCallbacks } from './leader-link.ts'
import type { PeerSignature } from './peer-signature.ts'
import { TakeOverBackOff } from './take-over-back-off.ts'

export interface TermCallbacks {
  /** This node leads in this term, for the first time or again. `now` is the database's clock. */
  opened(term: string, now: number): void
  /** Another node has taken over. */
  lost(): void
  /** This leadership has ended. Its engine may still be working while a later one has started. */
  readonly over: AbortSignal
}

/** The leader: this node with its engine, or another one with the link to it. */
type ReachableLeader =
  | { readonly engine: Store; readonly link: null }
  | { readonly engine: null; readonly link: LeaderLink }

/** A random delay, so that nodes that miss the leader at the same moment do not all try to take over. */
const TAKE_OVER_WITHIN_MILLIS = 20
/** An extra delay for a node that is about to stop, so that others take over first. */
const RELUCTANT_MILLIS = 300
/** How often a leader checks that it still leads. It only affects how soon it notices. */
const WATCH_MILLIS = 1000
const RETRY_MILLIS = 100
/** Shorter than others wait for the next leader, so that a long call-back does not fail all of them. */
const FINISH_MILLIS = 2000
const RESIGN_MILLIS = 500
/** As for a silent leader. It counts pauses and silence: a try may fail at once or after seconds. */
const UNFOLLOWED_MILLIS = 5000

interface LeadershipOptions {
  readonly signature: PeerSignature
  /** Taking over is not part of it: that is done by opening the engine on the disk. */
  readonly leaderRow: Pick<SharedDisk, 'readLeaderRow' | 'resign'>
  readonly clock: LeaderClock
  readonly followers: Followers
  readonly log: Log
  /** CA certificates for TLS between nodes; null for those of the system. */
  readonly trusted: Buffer | null
  open(seen: LeaderRow, callbacks: TermCallbacks): Promise<Store>
}

/**
 * Decides when this node tries to lead. The leader row in the database is authoritative, and a take-over is a
 * compare-and-set on it, so concurrent tries are harmless. A node tries at once if there is no leader, if the
 * leader's address refuses connections, or if another node answers there; after five seconds if the leader is
 * silent. A node that was deposed backs off; see TakeOverBackOff.
 */
export class Leadership {
  readonly #options: LeadershipOptions
  readonly #leader = new AwaitedLeader<ReachableLeader>('this node has not joined the cluster yet')
  readonly #stopping = new AbortController()
  readonly #backOff = new TakeOverBackOff({
    readLeaderRow: () => this.#readLeaderRow(),
    pause: (millis) => this.#pause(millis),
  })
  #running: Promise<void> | undefined
  #unfollowedMillis = 0
  #isLeaving = false
  /** Ends this node's leadership gracefully. */
  #handOver: (() => void) | undefined
  /** The engine of this node. It still serves the requests under way while this node hands over. */
  engine: Store | null = null
  /** Requests that this node serves as the leader. */
  #underWay = 0
  #served: PromiseWithResolvers<void> | undefined
  /** True at each take-over, even from itself: time may have jumped, and partitions be ready unnoticed. */
  onChange: (leads: boolean) => void = () => undefined

  constructor(options: LeadershipOptions) {
    this.#options = options
    options.followers.onOpen = () => {
      if (this.#isLeaving) this.#handOver?.()
    }
  }

  get leader(): ReachableLeader | null {
    return this.#leader.current
  }

  whenLeaderFound(): Promise<ReachableLeader> {
    return this.#leader.whenFound()
  }

  get leads(): boolean {
    return this.#leader.current?.engine != null
  }

  /** Counts a request that this node serves as the leader. Call the returned function when it is answered. */
  countRequest(): () => void {
    this.#underWay += 1
    return () => {
      this.#underWay -= 1
      if (this.#underWay === 0) this.#served?.resolve()
    }
  }

  start(): void {
    this.#leader.begin('no node has taken over yet')
    this.#running ??= this.#run()
  }

  /** This node is about to stop. If there are other nodes, one of them takes over now. */
  async handOverAndDrain(): Promise<void> {
    this.#isLeaving = true
    this.leader?.link?.closeStream()
    if (this.#options.followers.count === 0) return
    this.#handOver?.()
    await inTime(this.#whenServed(), FINISH_MILLIS)
  }

  async stop(): Promise<void> {
    this.#isLeaving = true
    this.#stopping.abort()
    this.#handOver?.()
    await this.#running
    this.#leader.close('this node has stopped')
  }

  async #run(): Promise<void> {
    let pause = RETRY_MILLIS
    while (!this.#stopping.signal.aborted) {
      try {
        const row = await this.#readLeaderRow()
        const isFree = !isLed(row) || row.leader.nodeId === this.#nodeId
        if (isFree) await this.#takeOver(row)
        else {
          const vacated = await this.#follow(row)
          if (vacated !== null && (await this.#mayTakeOver(vacated))) await this.#takeOver(vacated)
        }
        pause = RETRY_MILLIS
      } catch (error) {
        this.#leader.missing(
          error instanceof Error ? error.message : String(error),
          !(error instanceof LeaderUnavailable),
        )
        if (!(error instanceof StoreUnavailable)) this.#options.log.error({ err: error }, 'leading failed')
        await this.#pause(pause)
        pause = Math.min(pause * 2, WATCH_MILLIS)
      }
    }
  }

  /** Returns the row from which to take over; null: the leader row must be read again. */
  async #follow(row: LedRow): Promise<LedRow | null> {
    const { log, signature, trusted } = this.#options
    const { url } = row.leader
    // Asked again for each link: the node may have been stopped while it read the row.
    while (!this.#stopping.signal.aborted) {
      const callbacks: LinkCallbacks = {
        opened: () => {
          this.#unfollowedMillis = 0
          this.#backOff.followed()
          this.#leader.found({ engine: null, link })
          log.info({ leader: url }, 'this node is a follower')
        },
        leaving: () => this.#leader.missing('the leader is stopping'),
      }
      const link: LeaderLink = new LeaderLink(row, signature, callbacks, trusted)
      const stop = () => link.close()
      this.#stopping.signal.addEventListener('abort', stop)
      const { kind, reason } = await link.ended
      this.#stopping.signal.removeEventListener('abort', stop)
      // If this leader was gone from the start, a take-over follows, and its failure is the better reason.
      if ((kind !== 'gone' && kind !== 'other') || link.wasOpen) this.#leader.missing(reason)
      if (kind === 'closed' || kind === 'left') return null
      log.warn({ leader: url, reason }, 'the leader does not answer')
      if (kind === 'gone') return this.#rowOf(row.leader)
      if (kind === 'other') return row
      // The stream broke. The next one shows at once whether the leader is still there.
      if (link.wasOpen) continue
      this.#unfollowedMillis += link.silentMillis + RETRY_MILLIS
      if (this.#unfollowedMillis >= UNFOLLOWED_MILLIS) return row
      await this.#pause(RETRY_MILLIS)
      return null
    }
    return null
  }

  /** Null if another node leads by now. A leader may also take over from itself, in a term not yet known. */
  async #rowOf({ nodeId }: ClusterNode): Promise<LedRow | null> {
    const row = await this.#readLeaderRow()
    return isLed(row) && row.leader.nodeId === nodeId ? row : null
  }

  /** This node cannot reach the leader. If that leader deposed this node, other nodes may well reach it. */
  async #mayTakeOver(row: LedRow): Promise<boolean> {
    if (this.#backOff.isNeeded) {
      const { url } = row.leader
      this.#leader.missing(
        `the leader at ${url} cannot be reached from this node but is running; check the network and the peer URLs`,
      )
      this.#options.log.warn(
        { leader: url },
        'this node cannot reach the leader that replaced it and delays its next take-over',
      )
    }
    return this.#backOff.mayTakeOver(row)
  }

  /** Takes over only from the term that was seen. If another node was faster, opening fails. */
  async #takeOver(seen: LeaderRow): Promise<void> {
    const { open, clock, followers, leaderRow, log } = this.#options
    await this.#pause(Math.random() * TAKE_OVER_WITHIN_MILLIS + (this.#isLeaving ? RELUCTANT_MILLIS : 0))
    if (this.#stopping.signal.aborted) return
    const ended = Promise.withResolvers<'lost' | 'handed over'>()
    const over = new AbortController()
    const lost = () => {
      over.abort()
      ended.resolve('lost')
    }
    let engine: Store | undefined
    let term = ''
    followers.prepare()
    try {
      engine = await open(seen, {
        opened: (opened, now) => {
          clock.set(now)
          // The engine may still be opening the disk again when this leadership has ended.
          const isAgain = term !== '' && !over.signal.aborted
          term = opened
          if (!isAgain) return
          followers.lead(opened)
          this.onChange(true)
        },
        lost,
        over: over.signal,
      })
      this.#unfollowedMillis = 0
      followers.lead(term)
      log.info({ term }, 'this node is the leader')
      this.#handOver = () => ended.resolve('handed over')
      // A follower may have connected during the take-over.
      if (this.#stopping.signal.aborted || (this.#isLeaving && followers.count > 0)) this.#handOver()
      this.engine = engine
      this.#leader.found({ engine, link: null })
      this.onChange(true)
      const watch = setInterval(() => void this.#watch(lost), WATCH_MILLIS)
      const why = await ended.promise
      clearInterval(watch)
      this.#handOver = undefined
      this.#leader.missing(why === 'lost' ? 'another node has taken over' : 'this node is stopping')
      followers.announceEnd()
      this.onChange(false)
      if (why === 'lost') {
        this.#backOff.deposed()
        log.warn({}, 'another node is the leader now; requests in progress are answered with 503')
        return
      }
      if (!(await inTime(this.#closeWhenDone(engine), FINISH_MILLIS))) over.abort()
      // If the database does not answer, followers find that this node does not lead any more.
      await inTime(leaderRow.resign(), RESIGN_MILLIS)
    } finally {
      this.engine = null
      // Not awaited: nothing that this engine does has an effect any more.
      engine?.close().catch(() => undefined)
      followers.end()
    }
  }

  async #closeWhenDone(engine: Store): Promise<void> {
    await this.#whenServed()
    await engine.close()
  }

  async #whenServed(): Promise<void> {
    if (this.#underWay === 0) return
    this.#served ??= Promise.withResolvers()
    await this.#served.promise
  }

  async #watch(lost: () => void): Promise<void> {
    try {
      const { leader } = await this.#readLeaderRow()
      if (leader?.nodeId !== this.#nodeId) lost()
    } catch {
      // The engine reports the failure to requests that need the database.
    }
  }

  async #readLeaderRow(): Promise<LeaderRow> {
    const row = await this.#options.leaderRow.readLeaderRow()
    this.#options.signature.learn(row)
    return row
  }

  get #nodeId(): string {
    return this.#options.signature.nodeId
  }

  /** Ends early when the node stops. */
  async #pause(millis: number): Promise<void> {
    await sleep(millis, undefined, { signal: this.#stopping.signal }).catch(() => undefined)
  }
}

const inTime = (work: Promise<unknown>, millis: number): Promise<boolean> =>
  withTimeout(
    work.then(() => true),
    millis,
    () => false,
  )
