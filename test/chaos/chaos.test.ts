import { startEmbeddedFleet } from './support/embedded-fleet.ts'
import { describeGuarantees } from './support/guarantees.ts'
import { startPostgresFleet } from './support/postgres-fleet.ts'

const KILLS = 6

/** The other fleets that need only `npm ci` are in `more-fleets.long.test.ts`. */
describeGuarantees([
  { name: 'a fleet of three nodes on PostgreSQL', startFleet: startPostgresFleet },
  {
    name: `a node with its embedded store, killed ${KILLS} times`,
    startFleet: startEmbeddedFleet,
    choose: (all) => all.flatMap((one) => Array(one.name === 'kill' ? KILLS : 1).fill(one)),
  },
])
