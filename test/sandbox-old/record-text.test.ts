import { expect, test } from 'vitest';
import { hundredthsBytes, jsonBytes, thousandthsBytes } from '../../src/sandbox/data/json-bytes.ts';
import { Random } from '../../src/sandbox/data/random.ts';
import { EncodedText } from '../../src/sandbox/http/answer.ts';
import { createCompany } from '../../src/sandbox/state/company.ts';
import { company } from '../sandbox/support/paging.ts';
import { at, startFrozen } from '../sandbox/support/test-sandbox.ts';

const VIEW = { isShared: true, now: 0 };
const PAGE = 50;
const PAGES = 40;

/** Companies of other seeds and sizes; without contacts, conversations name people who are none. */
const COMPANIES = [
  { ordinal: 1, contacts: 180, conversations: 120 },
  { ordinal: 2, contacts: 1_000_000, conversations: 1_000_000 },
  { ordinal: 77, contacts: 9_000_000, conversations: 10_000_000 },
  { ordinal: 5_000, contacts: 0, conversations: 2_500 },
];

function decoded(text: string): string {
  return Buffer.from(text, 'latin1').toString('utf8');
}

test.each(COMPANIES)(
  'a page’s text is the JSON of its documents, to the character: company $ordinal',
  (spec) => {
    const company = createCompany(spec.ordinal, {
      name: 'Texts',
      plan: 'enterprise',
      addonRpm: 0,
      ...spec,
    });
    for (const [list, baseUrl] of [
      ['contacts', 'http://127.0.0.1:4010/api'],
      ['conversations', 'http://[::1]:4010/"ü\\'],
    ] as const) {
      const table = company.tables[list];
      const distance = Math.max(PAGE, Math.floor(spec[list] / PAGES));
      let compared = 0;
      for (let position = 0; position < spec[list]; position += distance) {
        const { texts } = table.page(position, PAGE, baseUrl, VIEW);
        const documents = texts.map((_, place) => {
          const document = table.find(table.idAt(position + place));
          return document && JSON.stringify(table.present(document as never, baseUrl, VIEW));
        });
        expect(texts.map(decoded)).toEqual(documents);
        compared += texts.length;
      }
      expect(compared).toBeGreaterThanOrEqual(Math.min(spec[list], 1_500));
    }
  },
);

test('fractions are written as JSON writes the number', () => {
  const random = new Random(11);
  for (let round = 0; round < 20_000; round++) {
    const [wholes, parts] = [1_500_000_000 + random.int(500_000_000), random.int(90 * 86_400_000)];
    expect(thousandthsBytes(wholes, parts)).toBe(JSON.stringify(wholes + parts / 1000));
    expect(hundredthsBytes(parts)).toBe(JSON.stringify(parts / 100));
  }
});

test('texts are UTF-8, one character a byte', () => {
  const text = jsonBytes('ü€😀\n');
  expect(text).toHaveLength(2 + 2 + 3 + 4 + 2);
  expect([...text].every((character) => character <= '\xff')).toBe(true);
  expect(JSON.parse(decoded(text))).toBe('ü€😀\n');
  expect(at([...text], 1).charCodeAt(0)).toBe(0xc3);
  expect(String(new EncodedText(text))).toBe('"ü€😀\\n"');
});

test('a page has the same bytes when a fault lets it through whole, in pieces or in part', async () => {
  const service = await startFrozen();
  const owner = await company(service);
  const read = async () => {
    const response = await service.api('/contacts', at(owner.api_tokens, 0).token);
    return {
      length: response.headers.get('content-length'),
      body: Buffer.from(await response.arrayBuffer()),
    };
  };
  const { length, body } = await read();
  expect(length).toBe(String(body.length));
  expect(body.toString('utf8')).toMatch(/\p{Script=Han}/u);
  for (const fault of [{ headers: { 'x-odd': '1' } }, { drip: { bytes: 9_001, every_ms: 0 } }]) {
    await service.done('faults', { match: {}, fault });
    expect((await read()).body.equals(body)).toBe(true);
  }
  await service.done('faults', { match: {}, fault: { truncate: 7_000 } });
  expect((await read()).body.equals(body.subarray(0, 7_000))).toBe(true);
});
