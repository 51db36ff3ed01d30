import { signal } from '@preact/signals'

/** For cells that span all columns: those that a narrow window hides must not be counted. As in the style sheet. */
const narrow = matchMedia('(max-width: 640px)')
const roomy = matchMedia('(min-width: 1001px)')

const count = () => (narrow.matches ? 3 : roomy.matches ? 6 : 5)

export const columnCount = signal(count())

for (const query of [narrow, roomy]) {
  query.addEventListener('change', () => {
    columnCount.value = count()
  })
}
