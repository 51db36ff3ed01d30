import type { ReportedRecords } from '@baton/protocol'
import { counted, exact } from '../parts/numbers.ts'
import { Scrolling } from '../parts/scrolling.tsx'

/** The records declared by the producer and those reported by the worker, for each partition. */
export function Mismatches({ reported }: { reported: ReportedRecords }) {
  const difference = reported.reported - reported.declared
  return (
    <details>
      <summary>
        Workers reported {counted(Math.abs(difference), 'record')} {difference < 0 ? 'fewer' : 'more'} than
        were declared
      </summary>
      <Scrolling label="Mismatches" kind="short">
        <table class="held">
          <thead>
            <tr>
              <th scope="col">Partition</th>
              <th scope="col" class="number">
                Declared
              </th>
              <th scope="col" class="number">
                Reported
              </th>
              <th scope="col" class="number">
                Difference
              </th>
            </tr>
          </thead>
          <tbody>
            {reported.mismatches.map(({ partition_name, declared, reported: said }) => (
              <tr key={partition_name}>
                <td title={partition_name}>
                  <span class="cut-start">
                    <bdi>{partition_name}</bdi>
                  </span>
                </td>
                <td class="number">{exact(declared)}</td>
                <td class="number">{exact(said)}</td>
                <td class="number">
                  {said > declared ? `+${exact(said - declared)}` : `−${exact(declared - said)}`}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scrolling>
      {reported.mismatched > reported.mismatches.length ? (
        <p class="quiet">The first {reported.mismatches.length} of them.</p>
      ) : null}
    </details>
  )
}
