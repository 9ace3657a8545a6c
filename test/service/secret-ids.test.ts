import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { KnownSecrets } from '../../src/runtime/logging/known-secrets.ts';
import { secretIds } from '../../src/service/secret-ids.ts';

const token = `at_${randomBytes(32).toString('base64url')}`;
const other = `rt_${randomBytes(32).toString('base64url')}`;
const known = new KnownSecrets();
for (const secret of [token, other]) known.add(secret);

/** Ids of a page that are told, why, and what was read for every secret in any form: how many texts and characters. */
function told(documents: string[]) {
  const bytes = Buffer.from(`{"_results":[${documents.join(',')}],"_pagination":{"next":null}}`);
  const items = JSON.parse(bytes.toString())._results as { id: unknown }[];
  let [read, length] = [0, 0];
  const refuse = secretIds({ items, bytes }, token, (text) => {
    read++;
    length += text.length;
    return known.givesAway(text);
  });
  const tellAll = () => new Map(items.map(({ id }) => [String(id), refuse(String(id))]));
  const reasons = tellAll();
  // As when a page that was taken for new is compared after all.
  expect(tellAll()).toEqual(reasons);
  const ids = [...reasons].filter(([, reason]) => reason !== undefined).map(([id]) => id);
  return { ids, reasons, read, length };
}

const base64 = (text: string) => Buffer.from(text).toString('base64');
const escaped = (text: string) =>
  text.replace(/./g, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`);
const percent = (text: string) => text.replace(/./g, (letter) => `%${letter.charCodeAt(0).toString(16)}`);

test.each([
  ['as it is', token, token],
  ['among other letters', `cnt-${token}-1`, `cnt-${token}-1`],
  ['escaped in the JSON', escaped(token), token],
  ['escaped as in addresses', percent(token), percent(token)],
])('an id that holds the token that its page was asked with is told: %s', (_, written, id) => {
  expect(told([`{"id":"cnt_1"}`, `{"id":"${written}"}`, '{"id":7}']).ids).toEqual([id]);
});

test('on a page that holds the token, an id that holds any secret in any form is told', () => {
  const ids = [base64(token), other, base64(other)];
  const page = told([
    '{"id":"cnt_1"}',
    ...ids.map((id) => `{"id":"${id}"}`),
    `{"id":"cnt_2","note":"${token}"}`,
  ]);
  expect(page.ids).toEqual(ids);
});

test('on any other page no id is read for it, whatever it is', () => {
  const page = told([`{"id":"${base64(token)}"}`, `{"id":"${other}"}`, '{"id":"cnt_1"}', '{"id":7}', '{}']);
  expect(page.ids).toEqual([]);
  expect(page.read).toBe(0);
});

test('of a page that holds the token and megabytes of ids, a bounded part is looked at; no other id counts as one', () => {
  const ids = Array.from({ length: 2_000 }, (_, n) => `${n}`.padStart(8, '0').padEnd(1_000, 'abc'));
  const { reasons, length } = told([
    ...ids.map((id) => `{"id":"${id}"}`),
    `{"id":"x${token}"}`,
    `{"id":"last","note":"${token}"}`,
  ]);
  expect(length).toBeGreaterThan(50_000);
  expect(length).toBeLessThan(100_000);
  const unread =
    'Its page holds the access token, and has too many ids, or too long ones, to look for secrets in each.';
  const looked = length / 1_000;
  expect(ids.map((id) => reasons.get(id))).toEqual(ids.map((_, n) => (n < looked ? undefined : unread)));
  expect(reasons.get(`x${token}`)).toBe('Its id holds a secret of the app.');
  expect(reasons.get('last')).toBe(unread);
});
