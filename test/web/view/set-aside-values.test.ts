import { expect, it } from 'vitest';
import { SET_ASIDE_IN_STATUS } from '../../../src/sync/status-types.ts';
import { setAsideSections, setAsideShown, setAsideValues } from '../../../src/web/view/set-aside-values.ts';
import { NOW, resourceStatus } from '../status-fixtures.ts';

const batch = {
  records: 100,
  first_id: 'crd_1',
  tries: 5,
  error: 'It failed.',
  parked_at: new Date(NOW).toISOString(),
};
const record = {
  reason: 'It has no id.',
  excerpt: '{"a":1}',
  length: 7,
  first_seen_at: new Date(NOW).toISOString(),
};
const aside = { parked: 0, parked_batches: [], quarantined: 0, quarantined_records: [] };

function valuesOf(set_aside: Parameters<typeof resourceStatus>[0]) {
  const parts = setAsideValues('contacts', resourceStatus(set_aside));
  return {
    text: Object.assign({}, ...parts.map(({ text }) => text)),
    show: Object.assign({}, ...parts.map(({ show }) => show)),
  };
}

it('says what is set aside, why, and how much more there is', () => {
  const { text, show } = valuesOf({
    set_aside: {
      parked: 9,
      parked_batches: [batch, { ...batch, records: 1 }, { ...batch, first_id: null, tries: 1 }],
      quarantined: 1,
      quarantined_records: [{ ...record, length: 2_000_000 }],
    },
  });
  expect(text).toMatchObject({
    'contacts.parked.0.what': '100 records, from crd_1 on',
    'contacts.parked.0.why': 'It failed. Tried 5 times.',
    'contacts.parked.1.what': '1 record: crd_1',
    'contacts.parked.2.what': '100 records',
    'contacts.parked.2.why': 'It failed. Tried 1 time.',
    'contacts.parked.more': 'And 6 more.',
    'contacts.quarantined.0.what': '{"a":1} … (2,000,000 characters)',
    'contacts.quarantined.0.why': 'It has no id.',
    'contacts.quarantined.more': '',
  });
  expect(show).toMatchObject({
    'contacts.parked': true,
    'contacts.parked.2': true,
    'contacts.parked.3': false,
    'contacts.quarantined.more': false,
  });
});

it('says of a batch what the own logic said, and not again that it was the own logic', () => {
  const error = "The app's own logic failed on a batch of contacts: db: leads is unknown";
  const { text } = valuesOf({ set_aside: { ...aside, parked: 1, parked_batches: [{ ...batch, error }] } });
  expect(text['contacts.parked.0.why']).toBe('db: leads is unknown. Tried 5 times.');
});

it('has a value for every line that the page has, also when nothing is set aside', () => {
  const { text, show } = valuesOf({});
  for (const kind of ['parked', 'quarantined']) {
    for (let n = 0; n < SET_ASIDE_IN_STATUS; n++) {
      expect(text).toMatchObject({ [`contacts.${kind}.${n}.what`]: '', [`contacts.${kind}.${n}.why`]: '' });
      expect(show[`contacts.${kind}.${n}`]).toBe(false);
    }
  }
});

it.each([
  ['nothing is set aside', {}, 'active', { 'set-aside': false, 'action.retry': false }],
  ['a batch is parked', { parked: 1 }, 'active', { 'set-aside': true, parked: true, 'action.retry': true }],
  ['it is paused', { parked: 1 }, 'paused', { 'set-aside': true, 'action.retry': false }],
  ['a record cannot be kept', { quarantined: 1 }, 'active', { 'set-aside': true, 'action.retry': false }],
] as const)('shows what there is to see and to do when %s', (_when, changes, instance, shown) => {
  const resource = resourceStatus({ set_aside: { ...aside, ...changes } });
  expect(setAsideShown([resourceStatus(), resource], instance).show).toMatchObject(shown);
});

const RESOURCES = [
  { name: 'contacts', title: 'Contacts' },
  { name: 'conversations', title: 'Conversations' },
];

it('has every line that is known on the page of its own, by kind and list, and how many more there are', () => {
  const sections = setAsideSections(RESOURCES, {
    contacts: { ...aside, quarantined: 1, quarantined_records: [record] },
    conversations: {
      parked: 9,
      parked_batches: Array.from({ length: 7 }, () => batch),
      quarantined: 1,
      quarantined_records: [record],
    },
  });
  expect(sections.map(({ words }) => words)).toEqual([
    expect.stringContaining('own logic did not take'),
    expect.stringContaining('cannot be kept'),
  ]);
  expect(sections.map(({ lists }) => lists.map(({ title }) => title))).toEqual([
    ['Conversations'],
    ['Contacts', 'Conversations'],
  ]);
  expect(sections[0]?.lists[0]).toMatchObject({ lines: { length: 7 }, more: 'And 2 more.' });
  expect(sections[1]?.lists[0]).toMatchObject({
    lines: [{ what: '{"a":1}', why: 'It has no id.' }],
    more: '',
  });
  expect(setAsideSections(RESOURCES, { contacts: aside, conversations: aside })).toEqual([]);
});
