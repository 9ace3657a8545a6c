import { expect, test } from 'vitest';
import { Collection } from '../../src/sandbox/data/collection.ts';
import { type Contact, contactKind } from '../../src/sandbox/data/contacts.ts';
import { companyCode, IdSeries } from '../../src/sandbox/data/ids.ts';
import { mix32, Random, unmix32 } from '../../src/sandbox/data/random.ts';
import { at } from '../sandbox/support/test-sandbox.ts';

const OWNER = { code: companyCode(1), seed: 4_711 };
const BASE_URL = 'http://127.0.0.1/api';
const VIEW = { isShared: true, now: 0 };

function contacts(count: number): Collection<Contact> {
  return new Collection(contactKind(OWNER), OWNER, count);
}

/** Texts of a page are strings of one character a byte. */
function decoded(text: string): string {
  return Buffer.from(text, 'latin1').toString('utf8');
}

function page(all: Collection, position: number, limit: number) {
  const { texts, next } = all.page(position, limit, BASE_URL, VIEW);
  return { documents: texts.map((text): Contact => JSON.parse(decoded(text))), next };
}

test('mixing is undone by unmixing', () => {
  for (const value of [0, 1, 2, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 123_456_789]) {
    expect(unmix32(mix32(value))).toBe(value);
  }
});

test('ids lead back to their index, and to none of another kind or company', () => {
  const ids = new IdSeries('crd', OWNER.code, OWNER.seed);
  const others = [
    new IdSeries('cnv', OWNER.code, OWNER.seed),
    new IdSeries('crd', companyCode(2), OWNER.seed),
  ];
  for (const index of [0, 1, 999_999, 0xffff_ffff]) {
    expect(ids.index(ids.id(index))).toBe(index);
    for (const other of others) expect(other.index(ids.id(index))).toBeUndefined();
  }
  for (const text of ['', 'crd_', ids.id(5).toUpperCase(), `${ids.id(5)}0`, ` ${ids.id(5)}`, 'crd_-1']) {
    expect(ids.index(text), text).toBeUndefined();
  }
});

test('no two companies share a code', () => {
  const codes = Array.from({ length: 20_000 }, (_, index) => companyCode(index + 1));
  expect(new Set(codes).size).toBe(codes.length);
  expect(codes.every((code) => /^[0-9a-z]{5}$/.test(code))).toBe(true);
});

test('the same seed gives the same series, spread over the whole range', () => {
  const [one, two] = [new Random(7), new Random(7)];
  const numbers = Array.from({ length: 2_000 }, () => one.int(10));
  expect(Array.from({ length: 2_000 }, () => two.int(10))).toEqual(numbers);
  for (let digit = 0; digit < 10; digit++) {
    expect(Math.abs(numbers.filter((number) => number === digit).length - 200)).toBeLessThan(70);
  }
});

test('a million contacts are there at once, the last page as quick as the first', () => {
  const all = contacts(1_000_000);
  const startedAt = performance.now();
  const { documents, next } = page(all, 999_950, 50);
  expect(performance.now() - startedAt).toBeLessThan(100);
  expect(documents).toHaveLength(50);
  expect(next).toBeUndefined();
  const found = all.find(at(documents, 49).id);
  expect(found && all.present(found, BASE_URL, VIEW)).toEqual(documents[49]);
});

test('a record is the same whenever it is read, and in many scripts', () => {
  const documents = page(contacts(300), 0, 300).documents;
  expect(page(contacts(300), 0, 300).documents).toEqual(documents);
  const names = JSON.stringify(documents);
  for (const script of [
    'Latin',
    'Cyrillic',
    'Greek',
    'Arabic',
    'Hebrew',
    'Devanagari',
    'Han',
    'Hangul',
    'Thai',
  ]) {
    expect(names).toMatch(new RegExp(`\\p{Script=${script}}`, 'u'));
  }
  expect(names).toMatch(/\p{Emoji_Presentation}/u);
});

test('mail addresses are unique, and reach no one', () => {
  const { documents } = page(contacts(300), 0, 300);
  const handles = documents.flatMap(({ handles }) => handles);
  const mails = handles.filter(({ source }) => source === 'email').map(({ handle }) => handle);
  expect(new Set(mails).size).toBe(300);
  for (const mail of mails)
    expect(mail).toMatch(/^[a-z]+\.[a-z]+\.[0-9a-z]+@[a-z-]+\.(example|com|org|net)$/);
});
