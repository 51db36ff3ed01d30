import { describeGuarantees } from './support/guarantees.ts'
import { startLoneFleet, startLossyFleet } from './support/postgres-fleet.ts'

describeGuarantees([
  { name: 'a lone node on PostgreSQL', startFleet: startLoneFleet },
  {
    name: 'a fleet whose database comes back without its last commits',
    startFleet: startLossyFleet,
    size: { operators: 0, maxLeases: null },
  },
])
