import { expect, test } from 'vitest';
import { install, isSynced, waitForStatus } from '../support/install.ts';
import type { SandboxCompany } from '../support/sandbox-control.ts';
import { startTestApp } from '../support/test-app.ts';
import { waitFor } from '../support/wait-for.ts';
import { goodHeaders, startHostileService } from './hostile-service.ts';

const service = await startHostileService();
const { app, control, sandbox, session } = await startTestApp({
  env: { SERVICE_API_URL: `${service.origin}/api` },
});
service.lead(sandbox.origin);
const browser = session();

/** What any list may have, and the copy keeps to the letter. */
const KEPT = [
  '{"id":"first"}',
  // A number is another id than its digits as a text, and than the text that the copy knows the number by.
  '{"id":0,"of":"number"}',
  '{"id":"0","of":"text"}',
  '{"id":"#0","of":"mark"}',
  '{"id":"##0","of":"two marks"}',
  '{"id":-0,"of":"minus"}',
  '{"n":1,"id":12345678901234567890}',
  '{"id":"12345678901234567890"}',
  `{"id":"large","text":"${'x'.repeat(1_000_000)}"}`,
  String.raw`{"id":"nul","text":"a\u0000b","a\u0000":1}`,
  String.raw`{"id":"nul\u0000a"}`,
  String.raw`{"id":"nul\u0000b"}`,
  String.raw`{"id":"half","text":"\ud83d","\udc00":["\udfff\ud800"]}`,
  '{"id":"\uFFFD"}',
  '{"id":"proto","__proto__":{"id":"taken"},"constructor":{"prototype":{"polluted":true}}}',
  '{"__proto__":{"polluted":true},"id":"proto2"}',
  ...['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'valueOf'].map((id) => `{"id":"${id}"}`),
  String.raw`{"id":"quotes","text":"' \" \\ ; -- %00 \u2028 </script>"}`,
  '{"id":"last"}',
];

/** What it cannot keep, and a part of the reason. */
const POISON: [text: string, reason: string][] = [
  ['{}', 'no id'],
  ['{"__proto__":{"id":"inherited"}}', 'no id'],
  ['{"id":null}', 'neither a text nor a number'],
  ['{"id":{"id":"deep"}}', 'neither a text nor a number'],
  ['{"id":true}', 'neither a text nor a number'],
  ['{"id":""}', 'is empty'],
  ['{"id":1.5}', 'no integer'],
  ['{"id":1e400}', 'no integer'],
  [String.raw`{"id":"\ud83d"}`, 'surrogates'],
  [String.raw`{"id":"\ud83e"}`, 'surrogates'],
  [`{"id":"${'i'.repeat(1_000_001)}"}`, 'longer than 1000'],
  ['null', 'no object'],
  ['"text"', 'no object'],
  ['[{"id":"in a list"}]', 'no object'],
];

/** Mixes the one with the other, so that each poison has neighbours. */
const MIXED = KEPT.flatMap((text, at) => [text, ...POISON.slice(at, at + 1).map(([poison]) => poison)]);

/** From now on the service has these contacts of a company, page by page. */
function serve({ id }: SandboxCompany, ...pages: string[][]): void {
  service.answer(id, ({ url, response }) => {
    const at = Number(url.searchParams.get('page') ?? 0);
    const next = at + 1 < pages.length ? `${service.origin}/api/contacts?page=${at + 1}` : null;
    const page = `{"_results":[${pages[at]?.join(',')}],"_pagination":{"next":${JSON.stringify(next)}}}`;
    response.writeHead(200, goodHeaders()).end(page);
  });
}

/** Syncs once more, to the end. */
async function syncAgain(id: string) {
  const last = (await app.control.status(id))?.resources.contacts?.finished_at;
  await app.control.syncNow(id);
  const { resources } = await waitForStatus(
    browser,
    id,
    (status) => isSynced(status) && status.resources.contacts?.finished_at !== last,
  );
  return resources.contacts;
}

async function download(id: string): Promise<string[]> {
  const { body } = await browser.get(`/instances/${id}/contacts.ndjson`);
  return body.split('\n').filter((line) => line !== '');
}

test('what cannot be kept is set aside and listed with the reason; all else of its page is kept to the letter', async () => {
  expect(MIXED.length).toBe(KEPT.length + POISON.length);
  const company = await control.addCompany({ name: 'Poison', plan: 'starter' });
  serve(company, MIXED);
  const id = await install(browser, company);
  const first = await waitForStatus(browser, id, isSynced);
  expect(first.resources.contacts).toMatchObject({
    records: KEPT.length,
    stored: KEPT.length,
    skipped: POISON.length,
    error: null,
  });
  expect((await download(id)).toSorted()).toEqual(KEPT.toSorted());
  expect(Object.hasOwn(Object.prototype, 'polluted')).toBe(false);

  const aside = first.resources.contacts?.set_aside;
  expect(aside?.quarantined).toBe(POISON.length);
  const { body } = await browser.get(`/instances/${id}`);
  expect(body).toContain('Records that cannot be kept');
  expect(aside?.quarantined_records.length).toBe(5);
  for (const { excerpt, reason } of aside?.quarantined_records ?? []) {
    const [, why] = POISON.find(([text]) => text.startsWith(excerpt)) ?? [];
    expect(reason).toContain(why);
    expect(body).toContain(reason);
  }
  expect(body).toContain(`And ${POISON.length - 5} more.`);
  expect(body).toContain(`href="/instances/${id}/set-aside"`);
  const all = await browser.get(`/instances/${id}/set-aside`);
  expect(all.status).toBe(200);
  expect([...all.body.matchAll(/<li>/g)].length).toBe(POISON.length);
  for (const [, why] of POISON) expect(all.body).toContain(why);
  // The index of the search gets over all of them.
  await waitFor(async () => {
    const found = await browser.get(`/instances/${id}/contacts?q=last`);
    return !found.body.includes('not searchable yet') && found.body.includes('1 record');
  });
  // Each of them can be opened, also the one whose id is a number.
  const list = await browser.get(`/instances/${id}/contacts`);
  const links = [...list.body.matchAll(/href="(\/instances\/\w+\/contacts\/[^"]+)"/g)].map(
    ([, to = '']) => to,
  );
  expect(links.length).toBe(KEPT.length);
  for (const link of links) expect((await browser.get(link)).status, link).toBe(200);
});

test('a second run over the same changes nothing; what the service has mended is off the list', async () => {
  const company = await control.addCompany({ name: 'Mended', plan: 'starter' });
  serve(company, MIXED);
  const id = await install(browser, company);
  const { resources } = await waitForStatus(browser, id, isSynced);
  const second = await syncAgain(id);
  expect(second?.set_aside).toEqual(resources.contacts?.set_aside);
  expect(second).toMatchObject({ deleted: 0, stored: KEPT.length });
  expect((await download(id)).toSorted()).toEqual(KEPT.toSorted());

  const [remaining = ''] = POISON[0] ?? [];
  serve(company, [...KEPT, remaining]);
  expect((await syncAgain(id))?.set_aside.quarantined_records).toMatchObject([{ excerpt: remaining }]);
  serve(company, KEPT);
  expect((await syncAgain(id))?.set_aside).toMatchObject({ quarantined: 0, quarantined_records: [] });
  expect((await browser.get(`/instances/${id}`)).body).toMatch(/class="card set-aside"[^>]* hidden/);
});

test('ids in bytes that are no UTF-8 are set aside, as two of them could not be told apart; such bytes elsewhere are not', async () => {
  const company = await control.addCompany({ name: 'Latin', plan: 'starter' });
  const latin = ['Ren\xe9', 'Ren\xe8'].map((id) => `{"id":"${id}"}`);
  const named = '{"id":"cut","text":"caf\xc3"}';
  const page = `{"_results":[${[...latin, named].join(',')}],"_pagination":{"next":null}}`;
  service.answer(company.id, ({ response }) =>
    response.writeHead(200, goodHeaders()).end(Buffer.from(page, 'latin1')),
  );
  const id = await install(browser, company);
  const { resources } = await waitForStatus(browser, id, isSynced);
  expect(resources.contacts).toMatchObject({ stored: 1, skipped: 2, set_aside: { quarantined: 1 } });
  expect(resources.contacts?.set_aside.quarantined_records[0]?.reason).toContain('UTF-8');
  expect(await download(id)).toEqual(['{"id":"cut","text":"caf\ufffd"}']);
});

test('7 and "7" are two records, on one page or on two, in one run or in two', async () => {
  const company = await control.addCompany({ name: 'Sevens', plan: 'starter' });
  const [number, text] = ['{"id":7,"of":"number"}', '{"id":"7","of":"text"}'];
  serve(company, [number]);
  const id = await install(browser, company);
  await waitForStatus(browser, id, isSynced);
  for (const pages of [[[text], [number]], [[number], [text]], [[text, number]]]) {
    serve(company, ...pages);
    await syncAgain(id);
    expect(await download(id)).toEqual([number, text]);
  }
  serve(company, [text]);
  expect(await syncAgain(id)).toMatchObject({ deleted: 1, stored: 1 });
  expect(await download(id)).toEqual([text]);
});

test('of any number of them a bounded number is kept, and the sync goes on', async () => {
  const company = await control.addCompany({ name: 'Many', plan: 'starter' });
  const poison = (page: number) => Array.from({ length: 90 }, (_, n) => `{"no":${page * 90 + n}}`);
  serve(company, [...poison(0), '{"id":"a"}'], [...poison(1), '{"id":"b"}'], ['{"id":"c"}', ...poison(2)]);
  const id = await install(browser, company);
  const { resources } = await waitForStatus(browser, id, isSynced);
  expect(resources.contacts).toMatchObject({ skipped: 270, stored: 3, set_aside: { quarantined: 100 } });
  expect((await browser.get(`/instances/${id}`)).body).toContain('270 records could not be kept');
});
