import { expect, test } from 'vitest'
import { reasonText } from './partition-table.ts'

const traceback =
  'exit code 1: Traceback (most recent call last):\n  File "load.py", line 3, in <module>\nValueError: no such table\n\n'

test.each([
  [
    traceback,
    Number.POSITIVE_INFINITY,
    'exit code 1: Traceback (most recent call last): · File "load.py", line 3, in <module> · ValueError: no such table',
  ],
  [traceback, 80, '… ValueError: no such table'],
  [traceback, 15, '… ValueError: …'],
  ['exit code 1: table is locked', 80, 'exit code 1: table is locked'],
  ['exit code 1: table is locked', 20, 'exit code 1: table …'],
  ['no\u0007 such table\r\n', 80, 'no· such table'],
  ['', 80, ''],
])('%j in %d columns', (reason, width, text) => {
  expect(reasonText(reason, width)).toBe(text)
})
