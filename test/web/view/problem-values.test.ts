import { expect, it } from 'vitest';
import { PROBLEMS_IN_STATUS } from '../../../src/sync/status-types.ts';
import { problemSections, problemsShown, problemValues } from '../../../src/web/view/problem-values.ts';
import { at, listStatus } from '../status-fixtures.ts';

const letter = { id: 'crd_1', error: 'It failed.', at: at(0) };
const record = { reason: 'It has no id.', excerpt: '{"a":1}', length: 7, at: at(0) };
const none = { rejected: 0, rejected_records: [], dead_letters: [] };
const handler = { pending: 0, dead_letters: 9, last_error: null, next_try_at: null };

it('says what cannot be kept or delivered, why, and how much more there is', () => {
  const problems = {
    rejected: 1,
    rejected_records: [{ ...record, length: 2_000_000 }],
    dead_letters: [letter, { ...letter, id: '#7' }],
  };
  const { text, show } = problemValues('contacts', listStatus({ handler, problems }));
  expect(text).toMatchObject({
    'contacts.dead.0.what': 'crd_1',
    'contacts.dead.0.why': 'It failed.',
    'contacts.dead.1.what': '#7',
    'contacts.dead.more': 'And 7 more.',
    'contacts.rejected.0.what': '{"a":1} … (2,000,000 characters)',
    'contacts.rejected.0.why': 'It has no id.',
    'contacts.rejected.more': '',
  });
  expect(show).toMatchObject({
    'contacts.dead': true,
    'contacts.dead.1': true,
    'contacts.dead.2': false,
    'contacts.rejected.more': false,
  });
});

it('has a value for every line that the page has, also without problems', () => {
  const { text, show } = problemValues('contacts', listStatus());
  for (const kind of ['dead', 'rejected']) {
    for (let n = 0; n < PROBLEMS_IN_STATUS; n++) {
      expect(text).toMatchObject({ [`contacts.${kind}.${n}.what`]: '', [`contacts.${kind}.${n}.why`]: '' });
      expect(show[`contacts.${kind}.${n}`]).toBe(false);
    }
  }
});

it.each([
  ['no problems', none, { problems: false, dead: false, rejected: false }],
  ['a dead letter', { ...none, dead_letters: [letter] }, { problems: true, dead: true, rejected: false }],
  [
    'a rejected record',
    { ...none, rejected: 1, rejected_records: [record] },
    { problems: true, dead: false },
  ],
])('shows what there is: %s', (_what, problems, shown) => {
  expect(problemsShown([listStatus(), listStatus({ problems })]).show).toMatchObject(shown);
});

const RESOURCES = [
  { name: 'contacts', title: 'Contacts' },
  { name: 'conversations', title: 'Conversations' },
];

it('has every known line on the page of problems, by kind and list, with a way to the record', () => {
  const statuses = { contacts: listStatus(), conversations: listStatus({ handler }) };
  const found = {
    contacts: { ...none, rejected: 1, rejected_records: [record] },
    conversations: { ...none, dead_letters: Array.from({ length: 7 }, () => letter) },
  };
  const sections = problemSections(RESOURCES, statuses, found, '/instances/ins_1');
  expect(sections.map(({ title, lists }) => [title, lists.map((list) => list.title)])).toEqual([
    ['Dead letters', ['Conversations']],
    ['Rejected records', ['Contacts']],
  ]);
  expect(sections[0]?.lists[0]).toMatchObject({ lines: { length: 7 }, more: 'And 2 more.' });
  expect(sections[0]?.lists[0]?.lines[0]?.address).toBe('/instances/ins_1/conversations/crd_1');
  expect(sections[1]?.lists[0]).toMatchObject({ lines: [{ what: '{"a":1}', address: null }], more: '' });
  expect(problemSections(RESOURCES, statuses, { contacts: none, conversations: none }, '')).toEqual([]);
});
