/** The same for everyone, so that a change is not blamed for a storm that others were spared; `npm run chaos` looks further. */
export const seed = Number(process.env['CHAOS_SEED'] ?? 1)
