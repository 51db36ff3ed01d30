import { dispatch } from '../packages/cli/src/dispatch.ts'

// The main file of the one-file command. It must be CommonJS, so unlike packages/cli/src/main.ts it cannot await.
void dispatch(process.argv.slice(2))
