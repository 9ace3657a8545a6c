import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { secretIds } from '../../src/client/secret-ids.ts';
import { KnownSecrets } from '../../src/runtime/logging/known-secrets.ts';

const token = `at_${randomBytes(32).toString('base64url')}`;
const other = `rt_${randomBytes(32).toString('base64url')}`;
const known = new KnownSecrets();
for (const secret of [token, other]) known.add(secret);

/** Ids of a page that are told, and how many texts were read for every secret in any form. */
function told(documents: string[]) {
  const bytes = Buffer.from(`{"_results":[${documents.join(',')}],"_pagination":{"next":null}}`);
  const items = JSON.parse(bytes.toString())._results as { id: unknown }[];
  let read = 0;
  const isSecret = secretIds({ items, bytes }, token, (text) => {
    read++;
    return known.givesAway(text);
  });
  return { ids: items.map(({ id }) => String(id)).filter(isSecret), read: () => read };
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
  expect(page.read()).toBe(0);
});
