#!/usr/bin/env node
import { enableCompileCache } from 'node:module'

// Compiling what it loads is half of what a short command costs; from the second run on this saves it.
enableCompileCache()

const { dispatch } = await import('./dispatch.ts')
await dispatch(process.argv.slice(2))
