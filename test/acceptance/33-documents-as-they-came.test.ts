import { describe, expect, it } from 'vitest';
import { syncAgain } from './support/lists.ts';
import { goodHeaders, pageOf, startProxy } from './support/proxy.ts';
import { createWorld } from './support/world.ts';

const LARGE_BYTES = 20_000_000;

/** What any list may have: the copy has it to the byte. */
const KEPT = [
  '{"id":"first"}',
  '{"id":"numbers","n":12345678901234567890,"e":1e400,"f":1.0,"g":-0,"h":0.1000}',
  '{"z":1,"id":"order","a":2,"10":3,"9":4}',
  '{"id":"twice","a":1,"a":2}',
  String.raw`{"id":"escapes","text":"\u00e9\/\t\u2028 </script> ' \" \\ ; -- %00","é":"é"}`,
  '{"id":"proto","__proto__":{"id":"taken"},"constructor":{"prototype":{"polluted":true}}}',
  '{"__proto__":{"polluted":true},"id":"proto2"}',
  ...['__proto__', 'constructor', 'toString'].map((id) => `{"id":"${id}"}`),
  // Ids are strings or integers, and are not mixed up.
  '{"id":7,"of":"number"}',
  '{"id":"7","of":"text"}',
  '{"id":12345678901234567890}',
  '{"id":"12345678901234567890"}',
];

/** What an edition may keep or reject; but nothing is lost without a word. */
const ODD = [
  String.raw`{"id":"nul-text","text":"a\u0000b","a\u0000":1}`,
  String.raw`{"id":"nul-id\u0000a"}`,
  String.raw`{"id":"half-text","text":"\ud83d","\udc00":["\udfff\ud800"]}`,
];

/** What cannot be told from others. */
const POISON = [
  '{"name":"no id"}',
  '{"id":null,"name":"null"}',
  '{"id":{"id":"deep"}}',
  String.raw`{"id":"\ud83d","name":"half an id"}`,
];

describe('33. A record that cannot be kept (no id, NUL, lone surrogates, 20 MB) is listed on the dashboard, and the page goes on. A document is kept as it came, to the byte.', async () => {
  const proxy = await startProxy();
  const world = await createWorld({ env: { SERVICE_API_URL: proxy.apiUrl } });
  proxy.lead(world.sandbox.origin);
  await world.startAll();

  /** Installs a company with these contacts, page by page. */
  async function installed(...pages: string[][]) {
    const company = await world.control.addCompany({ name: 'Odd', contacts: 0, conversations: 0 });
    proxy.answer(company.id, '/contacts', ({ url, response }) => {
      const at = Number(url.searchParams.get('page') ?? 0);
      const next = at + 1 < pages.length ? `${proxy.apiUrl}/contacts?page=${at + 1}` : null;
      response.writeHead(200, goodHeaders()).end(pageOf(pages[at] ?? [], next));
    });
    const browser = world.browser();
    const id = await world.install(browser, company);
    const status = await world.waitForSync(browser, id);
    return { company, browser, id, status };
  }

  const dashboardOf = async (browser: ReturnType<typeof world.browser>, id: string) =>
    (await browser.get(`/instances/${id}`)).text();

  it('what cannot be kept is listed, and all else of its page is kept to the byte', async () => {
    // Each poison has neighbours, and a page follows.
    const mixed = KEPT.flatMap((text, at) => [text, ...POISON.slice(at, at + 1)]);
    const last = '{"id":"on the next page"}';
    const { browser, id, status } = await installed(mixed, [last]);
    expect(status.resources.contacts).toMatchObject({ error: null, pages: 2, records: KEPT.length + 1 });
    expect((await world.download(browser, id, 'contacts')).sort()).toEqual([...KEPT, last].sort());
    const dashboard = await dashboardOf(browser, id);
    for (const text of POISON) expect(dashboard).toContain(text.slice(0, 10));

    // Another run changes nothing, and deletes nothing.
    await syncAgain(world, browser, id);
    expect((await world.download(browser, id, 'contacts')).sort()).toEqual([...KEPT, last].sort());
    for (const text of POISON) expect(await dashboardOf(browser, id)).toContain(text.slice(0, 10));
  });

  it('a document that comes over several lines is one line of the download', async () => {
    const { browser, id } = await installed(['{\n  "id" : "spaced",\r\n\t"list" : [ 1.0 , "a b" ]\n}']);
    const [line = '', ...others] = await world.download(browser, id, 'contacts');
    expect([line.replace(/(?<!a) /g, ''), ...others]).toEqual(['{"id":"spaced","list":[1.0,"a b"]}']);
  });

  it.each([
    ['a raw line break in a string', '{"id":"odd","text":"a\nb"}'],
    ['a raw tab in a string', '{"id":"odd","text":"a\tb"}'],
    ['a number that is none', '{"id":"odd","n":NaN}'],
    ['an escape that is none', String.raw`{"id":"odd","text":"\d"}`],
  ])('a record with %s spoils no other, and is listed with its place', async (_what, odd) => {
    const [before, behind] = ['{"id":"before"}', '{"id":"behind"}'];
    const { browser, id } = await installed([before, odd, behind]);
    expect((await world.download(browser, id, 'contacts')).sort()).toEqual([before, behind].sort());
    expect(await dashboardOf(browser, id)).toContain('as record 2 of its page');
  });

  it.each([
    ['NUL or half a character', ODD],
    ['20 MB', [`{"id":"large","text":"${'x'.repeat(LARGE_BYTES)}"}`]],
  ])('a record with %s is kept to the byte, or listed', async (_what, odd) => {
    const [before, behind] = ['{"id":"before"}', '{"id":"behind"}'];
    const { browser, id, status } = await installed([before, ...odd, behind]);
    expect(status.resources.contacts.error).toBeNull();
    const kept = new Set(await world.download(browser, id, 'contacts'));
    expect([before, behind].filter((text) => !kept.has(text))).toEqual([]);
    const dashboard = await dashboardOf(browser, id);
    const lost = odd.filter((text) => !kept.has(text) && !dashboard.includes(text.slice(0, 12)));
    expect(lost.map((text) => text.slice(0, 12))).toEqual([]);
    expect([...kept].filter((text) => ![before, ...odd, behind].includes(text)).length).toBe(0);
  });
});
