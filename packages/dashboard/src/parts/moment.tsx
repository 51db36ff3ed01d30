import { now } from '../service/clock.ts'
import { ago, ahead, moment } from './times.ts'

/** A point in time as a distance; the exact one is a tooltip away. */
export function Ago({ at }: { at: string }) {
  return (
    <time dateTime={at} title={moment(at)}>
      {ago(at, now.value)}
    </time>
  )
}

export function Ahead({ at }: { at: string }) {
  return (
    <time dateTime={at} title={moment(at)}>
      {ahead(at, now.value)}
    </time>
  )
}

/** Clocks differ, and an expired lease is taken back within moments: only what ended longer ago is called expired. */
const EXPIRED_AFTER_MILLIS = 2000

/** When a lease ends, or that it has: its partition is then handed out again as soon as the service gets to it. */
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
