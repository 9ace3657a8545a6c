import { describe, expect, it } from 'vitest';
import { DATABASES, openTestStore } from './test-store.ts';

const texts = [
  'Łukasz Wałęsa',
  'Søren Ærøskøbing',
  'Straße Groß',
  'Ħamrun Đorđe',
  'İstanbul ısı',
  'Ångström œuvre',
  'ភ្នំពេញទិញថ្នាំ',
  'ซื้อยาที่กรุงเทพ',
  '深圳市南山区',
  'Καλημέρα Ελλάδα',
  'Οδυσσεύς Λαέρτης',
  '+49 171 2345678',
  'call (030) 901820-0',
  '0041.44.668.18.00',
  'order 20260301-77',
];

describe.each(DATABASES)('on %s', async (kind) => {
  const store = await openTestStore(kind);
  const key = { instanceId: await store.addInstance(), resource: 'contacts' };
  await store.copy(
    texts.map((text) => JSON.stringify({ id: text, text })),
    key,
  );
  await store.index(key);

  async function search(typed: string): Promise<string[]> {
    const options = { search: typed, offset: 0, limit: 50 };
    const { records } = await store.records.browse(key.instanceId, key.resource, options);
    return records.map(({ id }) => id);
  }

  it.each([
    ['lukasz', 'Łukasz Wałęsa'],
    ['wałę', 'Łukasz Wałęsa'],
    ['soren', 'Søren Ærøskøbing'],
    ['STRASSE', 'Straße Groß'],
    ['GROẞ', 'Straße Groß'],
    ['dorde', 'Ħamrun Đorđe'],
    ['istanbul isi', 'İstanbul ısı'],
    ['angstrom oeuvre', 'Ångström œuvre'],
    ['ទិញថ្នាំ', 'ភ្នំពេញទិញថ្នាំ'],
    ['ยา', 'ซื้อยาที่กรุงเทพ'],
    ['南山', '深圳市南山区'],
    ['καλημερα', 'Καλημέρα Ελλάδα'],
    ['ΟΔΥΣ', 'Οδυσσεύς Λαέρτης'],
    ['οδυσσευσ', 'Οδυσσεύς Λαέρτης'],
    ['Οδυσσεύς λαερτησ', 'Οδυσσεύς Λαέρτης'],
  ])('finds %s in %s', async (typed, text) => {
    expect(await search(typed)).toEqual([text]);
  });

  it.each([
    ['+491712345678', '+49 171 2345678'],
    ['01712345678', '+49 171 2345678'],
    ['2345678', '+49 171 2345678'],
    ['+41446681800', '0041.44.668.18.00'],
    ['20260301-77', 'order 20260301-77'],
  ])('finds the number %s in %s', async (typed, text) => {
    expect(await search(typed)).toEqual([text]);
  });

  it.each(['01712345679', '+1 555 2345679', 'sorry 2345678'])('does not find %s', async (typed) => {
    expect(await search(typed)).toEqual([]);
  });

  it('finds a record with the most and longest words that the index keeps', async () => {
    // Three bytes a letter.
    const words = Array.from({ length: 10_000 }, (_, at) => `${at}${'ა'.repeat(22)}`);
    const crowded = { instanceId: await store.addInstance(), resource: 'contacts' };
    await store.copy([JSON.stringify({ id: 'crowded', text: `first ${words.join(' ')}` })], crowded);
    await store.index(crowded);
    const options = { search: 'first', offset: 0, limit: 5 };
    const { records } = await store.records.browse(crowded.instanceId, crowded.resource, options);
    expect(records.map(({ id }) => id)).toEqual(['crowded']);
  });
});
