import { expect } from 'vitest'
import type { TestApp } from './test-app.ts'

export interface Family {
  readonly help: string
  readonly type: string
  readonly series: ReadonlyMap<string, number>
}

const SAMPLE = /^([a-z_]+)(?:\{((?:[a-z_]+="(?:[^"\\]|\\[\\"n])*",?)+)\})? (\S+)$/

/** Parses the Prometheus text format, more strictly than most readers. */
function readMetrics(text: string): Map<string, Family> {
  const families = new Map<string, { help: string; type: string; series: Map<string, number> }>()
  expect(text.endsWith('\n')).toBe(true)
  let current = ''
  for (const line of text.slice(0, -1).split('\n')) {
    const [, help, helpText = ''] = /^# HELP ([a-z_]+) (.+)$/.exec(line) ?? []
    const [, typed, type = ''] = /^# TYPE ([a-z_]+) (counter|gauge|histogram)$/.exec(line) ?? []
    if (help !== undefined) {
      expect(families.has(help), `${help} is there twice`).toBe(false)
      families.set(help, { help: helpText, type: '', series: new Map() })
      current = help
    } else if (typed !== undefined) {
      const family = families.get(typed)
      expect([typed, family?.type, family?.series.size], 'HELP, TYPE, samples').toEqual([current, '', 0])
      if (family !== undefined) family.type = type
    } else {
      const [, name = '', labels = '', value = ''] = SAMPLE.exec(line) ?? []
      const family = families.get(current)
      const names =
        family?.type === 'histogram' ? ['_bucket', '_sum', '_count'].map((end) => current + end) : [current]
      expect(names, `${line} stands under ${current}`).toContain(name)
      const key = labels === '' ? name : `${name}{${labels}}`
      expect(family?.series.has(key), `${key} is there twice`).toBe(false)
      expect(Number.isFinite(Number(value)), line).toBe(true)
      family?.series.set(key, Number(value))
    }
  }
  return families
}

/** The result of one scrape of a service. */
export class Scrape {
  readonly families: ReadonlyMap<string, Family>
  readonly text: string

  constructor(text: string) {
    this.text = text
    this.families = readMetrics(text)
  }

  static async of(baton: TestApp): Promise<Scrape> {
    const { status, text } = await baton.get('/metrics')
    expect(status).toBe(200)
    return new Scrape(text)
  }

  /** The value of a series in its text form with labels; undefined if it is absent. */
  value(series: string): number | undefined {
    const name = series.replace(/\{.*/, '')
    const family = this.families.get(name) ?? this.families.get(name.replace(/_(bucket|sum|count)$/, ''))
    return family?.series.get(series)
  }

  /** Every series of a metric by its labels, or, if there is only one label, by its value. */
  by(name: string): Record<string, number> {
    const series = this.families.get(name)?.series ?? new Map<string, number>()
    return Object.fromEntries(
      [...series].map(([key, value]) => {
        const labels = [...key.matchAll(/"([^"]*)"/g)].map((match) => match[1])
        return [labels.join(' '), value]
      }),
    )
  }
}
