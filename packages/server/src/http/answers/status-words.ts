/**
 * Node's words for each status. Not by an import: for that Node reads everything that node:http has, a client for
 * WebSockets among it, which takes 0.07 s of a processor at every start.
 */
export const { STATUS_CODES: statusWords } = process.getBuiltinModule('node:http')
