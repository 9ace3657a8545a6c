import { expect, test } from 'vitest';
import { Canaries, formsOf } from './canaries.ts';

const SECRET = 'a+b/c "Zoë" <&> 0123456789';

test.each([
  ['plain', SECRET],
  ['URL-encoded', `https://x/?t=${encodeURIComponent(SECRET)}&u`],
  ['as a form', new URLSearchParams({ t: SECRET }).toString()],
  ['JSON-escaped', JSON.stringify({ t: SECRET })],
  ['JSON in JSON', JSON.stringify({ t: JSON.stringify({ t: SECRET }) })],
  ['HTML', 'x a+b/c &quot;Zoë&quot; &lt;&amp;&gt; 0123456789 y'],
  ['hex', Buffer.from(`x${SECRET}y`).toString('hex')],
  ['Base64', Buffer.from(SECRET).toString('base64')],
  ['Base64 after one character', Buffer.from(`:${SECRET}`).toString('base64')],
  ['Base64 after two characters and before others', Buffer.from(`id${SECRET}, and more`).toString('base64')],
  ['base64url', Buffer.from(`app:${SECRET}`).toString('base64url')],
])('a secret is found: %s', (_form, text) => {
  const canaries = new Canaries();
  canaries.add('secret', SECRET);
  expect(canaries.hits('here', `before ${text} after`)).not.toEqual([]);
  expect(canaries.hits('here', `before ${text} after`, ['secret'])).toEqual([]);
  expect(canaries.hits('here', text.slice(0, text.length / 2))).toEqual([]);
  expect(canaries.hits('here', `before ${text} after`).join()).not.toContain(SECRET);
});

test('forms that look the same are searched for once', () => {
  expect([...formsOf('0123456789').keys()]).toEqual([
    'plain',
    'in hex',
    'in Base64 (0)',
    'in Base64 (1)',
    'in Base64 (2)',
  ]);
});
