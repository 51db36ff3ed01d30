// Prints the outcome of a test run as one plain line, read from Vitest's JSON report.
import { readFileSync } from 'node:fs'

interface TestReport {
  numPassedTests: number
  numFailedTests: number
  testResults: { status: string; assertionResults: unknown[] }[]
}

function readReport(path: string | undefined): TestReport | undefined {
  try {
    return JSON.parse(readFileSync(path ?? '', 'utf8')) as TestReport
  } catch {
    return undefined
  }
}

const report = readReport(process.argv[2])
if (report === undefined) {
  // The runner ended before it could write a report: that is a failure, not an empty success.
  console.log('0 passed, 1 failed')
} else {
  // A file that could not even be loaded has no tests to count, yet it must not look like a pass.
  const unloadable = report.testResults.filter(
    (file) => file.status === 'failed' && file.assertionResults.length === 0,
  ).length
  console.log(`${report.numPassedTests} passed, ${report.numFailedTests + unloadable} failed`)
}
