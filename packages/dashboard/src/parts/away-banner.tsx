import { awaySince } from '../service/live.ts'
import { timeOfDay } from './times.ts'

/** Everything below it looks alive; this says that it is not. */
export function AwayBanner() {
  const since = awaySince.value
  return (
    <div class="away" role="alert">
      {since === null ? null : (
        <p class="away-banner">
          <b>The service has not been reachable since {timeOfDay(since)}.</b> What you see is from then.
        </p>
      )}
    </div>
  )
}
