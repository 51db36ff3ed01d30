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
