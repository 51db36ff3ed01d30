import { now } from '../service/live.ts'
import { ago, ahead, clock, moment } from './format.ts'

/** A relative time, with the exact time as a tooltip. */
export function Ago({ at }: { at: string }) {
  return (
    <time dateTime={at} title={moment(at)}>
      {ago(at, now.value)}
    </time>
  )
}

/** Both relative and exact, where the moment matters and nobody can hover. */
export function Since({ at }: { at: string }) {
  const time = Date.parse(at)
  return (
    <>
      <Ago at={at} /> ({clock(time, now.value - time)})
    </>
  )
}

export function Ahead({ at }: { at: string }) {
  return (
    <time dateTime={at} title={moment(at)}>
      {ahead(at, now.value)}
    </time>
  )
}

/**
 * Clocks differ, and the service ends an expired lease after a short delay. Only a lease that ended longer
 * ago is shown as expired.
 */
const EXPIRED_AFTER_MILLIS = 2000

/** When a lease expires, or that it has expired. Its partition is then handed out again soon. */
export function LeaseEnd({ at }: { at: string }) {
  const isOver = now.value - Date.parse(at) > EXPIRED_AFTER_MILLIS
  return isOver ? (
    <>
      lease expired <Ago at={at} />
    </>
  ) : (
    <>
      lease ends <Ahead at={at} />
    </>
  )
}
