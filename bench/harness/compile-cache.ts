import { fileURLToPath } from 'node:url'

/** The cache that `npm start` gives the service; without it every start would compile the sources again. */
export const COMPILE_CACHE = {
  NODE_COMPILE_CACHE: fileURLToPath(new URL('../../node_modules/.cache/baton', import.meta.url)),
}
