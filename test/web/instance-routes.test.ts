import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { collectWrites } from '../../src/changes/collect-writes.ts';
import { addWrites } from '../../src/store/outbox.ts';
import type { SandboxCompany } from '../acceptance/support/sandbox-control.ts';
import { documentsOf, NOW } from '../store/test-store.ts';
import type { HttpBrowser } from '../support/http-browser.ts';
import { type StartedWeb, startWeb } from './start-web.ts';

const NAME = 'Riverside Dental';

let web: StartedWeb;
let browser: HttpBrowser;
let company: SandboxCompany;
let id: string;
beforeAll(async () => {
  web = await startWeb();
});
beforeEach(async () => {
  ({ browser, company, id } = await web.installed(NAME));
});

const get = (path = '') => browser.get(`/instances/${id}${path}`);
const post = (path: string, fields = {}) => browser.post(`/instances/${id}/${path}`, fields);
const textOf = async (path: string) => (await get(path)).text();
const keyOf = (resource: string) => ({ instanceId: id, resource });

/** A finished full run of both lists, over these documents. */
async function copyAll(documents = documentsOf(2)) {
  await web.store.copy(documents, keyOf('conversations'));
  return web.store.copy(documents, keyOf('contacts'));
}

function set(table: 'instances' | 'outbox', values: object) {
  const column = table === 'instances' ? 'id' : 'instance_id';
  return web.store.db.transact((tx) =>
    tx
      .updateTable(table as 'outbox')
      .set(values)
      .where(column as 'instance_id', '=', id)
      .execute(),
  );
}

async function noted() {
  const actions = await web.store.actions.list({ instanceId: id, limit: 9 });
  return actions.filter(({ action }) => action !== 'install');
}

const statusOf = async () => (await web.deps.status.read(id)) ?? expect.unreachable();

function actionsOf(body: string): string[] {
  return [...body.matchAll(/action="\/instances\/\w+\/([\w-]+)"/g)].map(([, action = '']) => action);
}

describe('the overview', () => {
  it('shows the state, how true it is, and the lists', async () => {
    await copyAll(documentsOf(1_200));
    const { body, headers } = await get();
    for (const text of [
      'Up to date',
      '1,200',
      'Complete as of</dt><dd><time datetime="2026-03-01T12:00:00.000Z">1 Mar 2026, 12:00 UTC</time>',
      '<time datetime="2026-03-01T13:00:00.000Z" data-relative="ahead">in 1 h<',
      'As of <time datetime="2026-03-01T12:00:00.000Z">',
    ]) {
      expect(body).toContain(text);
    }
    expect(body).not.toMatch(/undefined|NaN|\[object/);
    expect(headers.get('cache-control')).toBe('no-store');
  });

  it.each([
    ['active', ['sync', 'pause'], ['logout-others', 'disconnect']],
    ['paused', ['resume'], ['logout-others', 'disconnect']],
    ['needs_reauthorization', [], ['logout-others', 'disconnect']],
    ['disconnected', [], ['logout-others', 'disconnect']],
    ['emptied', ['forget'], []],
  ])('and the settings offer what makes sense: %s', async (status, offered, inSettings) => {
    if (status !== 'emptied') await copyAll();
    await set('instances', { status: status === 'emptied' ? 'disconnected' : status });
    const { body } = await get();
    expect(actionsOf(body)).toEqual(offered);
    expect(actionsOf((await get('/settings')).body).filter((action) => action !== 'replay')).toEqual(
      inSettings,
    );
    const again = { needs_reauthorization: 'Authorize again', disconnected: 'Install again' }[status];
    if (again) expect(body).toContain(`/install?return_to=%2Finstances%2F${id}">${again}`);
  });

  it('hides the sync while everything is under way', async () => {
    const { body } = await get();
    expect(body).toContain(`action="/instances/${id}/sync" hidden>`);
    const claim = await web.store.claimRun(keyOf('contacts'));
    await web.store.runs.fail(claim, { kind: 'timeout', detail: 'Late.' }, NOW, NOW + 9_000);
    expect((await get()).body).toContain(`action="/instances/${id}/sync">`);
  });

  it('says nothing that only a developer understands, and where that stands', async () => {
    const list = await copyAll(['{"id":"crd_1","name":"Ada Lovelace"}', '{"id":"crd_2"}']);
    await web.store.bury(list, 'crd_1');
    await write('crd_1');
    await set('outbox', { state: 'unknown', attempts: 1, error: 'It is <b>lost</b>.' });
    expect(await textOf('')).toContain('could not be handed to Test app.');
    for (const path of ['', '/runs', '/contacts']) {
      expect(await textOf(path), path).not.toMatch(/handler|dead letter|outbox|replay|429|token|broken/i);
    }
    const settings = await textOf('/settings');
    for (const text of [
      'Contacts: 1 change pending.',
      'Ada Lovelace crd_1 It is broken.',
      '/conversations/crd_1',
      'Refresh token ends',
    ]) {
      expect(settings).toContain(text);
    }
  });

  it('leads to the other companies of the browser, on the page that is open', async () => {
    expect((await get('/settings')).body).not.toContain('Switch company');
    const other = await web.installed('Other', browser);
    const { body } = await get('/settings');
    expect(body).toContain(`<li><a href="/instances/${other.id}/settings" dir="auto">Other</a></li>`);
    expect(body).toContain(`<a href="/instances/${id}/settings" aria-current="page">Settings</a>`);
  });

  it('shows on the page of problems what there is, as text, or that there is nothing', async () => {
    expect(await textOf('/problems')).toContain('No problems.');
    const nameless = Array.from({ length: 7 }, (_, n) => `{"x":"<img>${n}"}`);
    const list = await copyAll([...nameless, '{"id":7}']);
    await web.store.bury(list, '#7');
    await set('instances', { name: '<i>Ω</i>' });
    expect((await get()).body).toContain('It has no id.');
    const { body } = await get('/problems');
    for (const text of ['It has no id.', '&lt;img&gt;', '&lt;i&gt;Ω', 'It is broken.']) {
      expect(body).toContain(text);
    }
    expect(body).toContain(`href="/instances/${id}/contacts?record=%237"><span dir="auto">7</span> <code`);
    expect(body).not.toMatch(/No problems|<img>|<i>|undefined/);
  });
});

/** Puts replies to these conversations into the outbox, whose keys are their ids. */
async function write(...conversations: string[]) {
  const { outbox, close } = collectWrites(id);
  for (const key of conversations) {
    await outbox.replyToConversation({ conversation_id: key }, { body: 'Hi' }, { key });
  }
  await web.store.db.transact((tx) => addWrites(web.store.db, tx, id, close()));
}

describe('writes to the service', () => {
  it('stand in the settings while they wait, with what a person can do', async () => {
    await copyAll();
    expect(await textOf('/settings')).not.toContain('waiting to be written');
    await write('<cnv_1>');
    await set('outbox', { state: 'unknown', error: 'The service <b>failed</b> (500).', attempts: 1 });
    expect(await textOf('')).toContain('The copy is up to date, but 1 change for the service waits');
    const page = await get('/settings');
    for (const part of ['Unknown Sends a message in a conversation:', 'it may have arrived']) {
      expect(page.text()).toContain(part);
    }
    expect(page.body).not.toMatch(/<b>|<cnv_1>|undefined/);
    const buttons = [
      ...page.body.matchAll(/(send-again|end-write)".*?name="id" value="([^"]+)".*?>([\w ]+)<\/button>/g),
    ];
    expect(buttons.map(([, ...what]) => what)).toEqual([
      ['send-again', '&lt;cnv_1&gt;', 'Send again'],
      ['end-write', '&lt;cnv_1&gt;', 'It arrived'],
    ]);
    expect((await get('/problems')).body).toContain('It arrived');
    await set('outbox', { state: 'refused' });
    expect((await get('/settings')).body).toMatch(/>Try again<.*>Discard</s);
    await set('outbox', { state: 'pending', not_before: NOW + 20_000 });
    expect(await textOf('/settings')).toContain('The app tries again in 20 s');
  });

  it('are decided by their key, and the action is noted without it', async () => {
    await write('a');
    await set('outbox', { state: 'unknown' });
    for (const action of ['send-again', 'end-write']) {
      expect((await post(action, { id: 'a' })).url.search).toBe(`?done=${action}`);
    }
    expect((await statusOf()).outbox).toMatchObject({ unknown: 0, pending: 0, writes: [] });
    expect(await noted()).toMatchObject([{ action: 'end-write', record: null }, { action: 'send-again' }]);
  });

  it('of a company that was disconnected can only be said to have arrived', async () => {
    await write('a', 'b');
    await web.store.db.transact((tx) =>
      tx.updateTable('outbox').set({ state: 'unknown' }).where('key', '=', 'a').execute(),
    );
    await post('disconnect');
    const { body } = await get('/settings');
    expect(body).toContain('The disconnect discarded 1 write.');
    expect(body).toContain('It arrived');
    expect(body).not.toContain('Send again');
  });
});

describe('the status', () => {
  it('answers 304 as long as nothing but the clock changes', async () => {
    const tag = /data-tag="([^"]+)"/.exec((await get()).body)?.[1]?.replaceAll('&quot;', '"') ?? '';
    const headers = { 'if-none-match': tag, 'cache-control': 'no-cache' };
    const ask = async () => (await browser.get(`/instances/${id}/status`, { headers })).status;
    expect(await ask()).toBe(304);
    await set('instances', { status: 'paused' });
    expect(await ask()).toBe(200);
  });

  it('of somebody else’s instance is an error object for programs', async () => {
    const answer = await web.browser().get(`/instances/${id}/status`);
    expect(answer.json()).toMatchObject({ _error: { status: 404, title: 'Not found' } });
  });
});

it('the history has charts and rows without what is inside, or is JSON when that is asked for', async () => {
  await copyAll(documentsOf(12));
  const claim = await web.store.claimRun(keyOf('contacts'));
  await web.store.write(claim, ['{"id":"new"}'], { next: '/next' });
  await web.store.runs.fail(claim, { kind: 'server_error', detail: '503 of /inside' }, NOW, NOW);
  const page = await get('/runs');
  expect(page.body).toContain('1 Mar: 1 new · first copy of 12 records · 1 sync · a sync failed');
  for (const text of ['Contacts: 1 new', 'The service has an error of its own.']) {
    expect(page.text()).toContain(text);
  }
  expect(page.body).not.toContain('/inside');
  const headers = { accept: 'application/json' };
  const json = (await browser.get(`/instances/${id}/runs`, { headers })).json();
  expect(json).toMatchObject({ contacts: [{ state: 'failed', error: '503 of /inside' }, { created: 12 }] });
});

describe('the buttons', () => {
  it.each([
    ['sync', ''],
    ['pause', ''],
    ['resume', ''],
    ['disconnect', '/settings'],
    ['replay', '/settings'],
    ['retry', '/settings'],
    ['contacts/sync', '/settings'],
    ['contacts/pause', '/settings'],
    ['contacts/resume', '/settings'],
    ['contacts/retry', '/settings'],
    ['contacts/replay', '/settings'],
    ['contacts/confirm-deletions', ''],
  ] as const)('%s, lead back, and are noted', async (path, place) => {
    const list = await copyAll(documentsOf(12));
    await web.store.bury(list, '0');
    if (path === 'resume') await set('instances', { status: 'paused' });
    if (path === 'contacts/resume') await web.store.dueLists.pause(keyOf('contacts'), NOW);
    const claim = await web.store.claimRun(keyOf('contacts')).catch(() => undefined);
    if (claim) await web.store.finish(claim, { missing: 12, held: 12, heldRun: claim.run });
    const page = await get(place);
    const answer = await browser.submit(page.form(`/instances/${id}/${path}`), {}, { follow: false });
    const [action, resource = null] = path.split('/').reverse();
    const back = action === 'disconnect' ? '' : place;
    const done = `done=${action}${resource === null ? '' : `&list=${resource}`}`;
    expect([answer.status, answer.location?.href]).toEqual([
      303,
      `${web.url}/instances/${id}${back}?${done}`,
    ]);
    expect(await noted()).toMatchObject([{ action, resource, by: 'administrator' }]);
    expect((await browser.get(answer.location ?? '')).body).toContain('class="flash" data-tone="good"');
    expect((await get()).body).not.toContain('class="flash"');
  });

  it('set the interval of a list, or the default', async () => {
    for (const [minutes, kept] of [
      ['15', 15],
      ['', 60],
    ] as const) {
      const form = (await get('/settings')).form(`/instances/${id}/contacts/interval`);
      await browser.submit(form, { minutes });
      expect((await statusOf()).resources.contacts?.interval_minutes).toBe(kept);
    }
  });

  it.each(['0', '-1', '1.5', 'x', '1e2', '44641'])('refuse the interval %s', async (minutes) => {
    const { status, body } = await post('contacts/interval', { minutes });
    expect(status).toBe(400);
    const field = `id="interval-contacts"[^>]*value="${minutes}"[^>]*aria-invalid="true"`;
    expect(body).toMatch(new RegExp(field));
    expect(body).toMatch(/id="interval-help-contacts" class="failure">An interval is .* from 1 to 44,640/);
    expect(body.match(/aria-invalid/g)).toHaveLength(1);
  });

  it.each([
    ['retry', 'active'],
    ['resume', 'active'],
    ['replay', 'disconnected'],
    ['forget', 'disconnected'],
    ['disconnect', 'disconnected'],
    ['pause', 'disconnected'],
  ])('do nothing where they make no sense: %s, %s', async (action, status) => {
    await copyAll();
    await set('instances', { status });
    const pages = [(await get()).body, (await get('/settings')).body];
    if (action !== 'disconnect') expect(pages.flatMap(actionsOf)).not.toContain(action);
    expect((await post(action)).body).toContain('Nothing was done');
    expect(await noted()).toEqual([]);
  });

  it.each(['pause', 'disconnect', 'forget', 'x'])('say nothing untrue: done=%s', async (done) => {
    expect((await get(`?done=${done}`)).body).not.toContain('class="flash"');
  });

  it('take a record’s id as it came, or as a person types it', async () => {
    await copyAll(['{"id":" lead"}', '{"id":7}']);
    for (const record of [' lead', '7']) {
      expect((await post('contacts/erase', { id: record })).body).toContain('The record is erased.');
      expect((await post('contacts/erase', { id: record })).status).toBe(404);
    }
  });

  const WRONG_NAME = `type the company’s name: ${NAME}. Nothing was done.`;
  it.each([
    [{ delete_data: 'yes' }, WRONG_NAME],
    [{ delete_data: 'yes', company_name: 'Riverside' }, WRONG_NAME],
    [{ company_name: NAME }, 'did not tick “Also delete the copied data”. Nothing was done.'],
  ])('delete no data without the tick and the company’s name: %j', async (fields, words) => {
    const answer = await post('disconnect', fields);
    expect(answer.status).toBe(400);
    expect(answer.body).toContain(words);
    // What was typed stays.
    expect(Object.fromEntries(answer.form(`/instances/${id}/disconnect`).fields)).toMatchObject(fields);
    expect((await statusOf()).status).toBe('active');
  });

  it('disconnect and delete the data by the company’s name, however it is spelled', async () => {
    await copyAll();
    const page = await post('disconnect', { delete_data: 'yes', company_name: ' riverside  DENTAL ' });
    expect(page.body).toContain('To end the permission itself, remove the app at the service.');
    expect(await statusOf()).toMatchObject({ status: 'disconnected', has_copy: false });
    expect(await noted()).toMatchObject([{ action: 'disconnect and delete data' }]);
  });

  it('delete the copy of a company that is disconnected, which then can leave the list', async () => {
    await copyAll();
    await post('disconnect');
    const form = (await get('/settings')).form(`/instances/${id}/disconnect`);
    await browser.submit(form, { company_name: NAME });
    const front = await browser.submit((await get()).form(`/instances/${id}/forget`));
    expect(front.url.pathname).toBe('/');
    expect(front.body).toContain('no longer lists the company');
    expect(front.body).not.toContain(NAME);
    expect((await get()).status).toBe(404);
  });

  const others = ['forget', 'disconnect', 'constructor'].map((action) => `contacts/${action}`);
  it.each([...others, 'tags/sync', 'erase', 'interval', 'constructor'])('are no others: %s', async (path) => {
    expect((await post(path)).status).toBe(404);
  });
});

it('a browser that another one has logged out reads so on every page, until it signs in again', async () => {
  const other = web.browser();
  await web.install(other, company);
  await post('logout-others');
  for (const path of ['', '/contacts', '/settings']) {
    const page = await other.get(`/instances/${id}${path}`);
    expect([page.status, page.text().includes('You were signed out')], path).toEqual([404, true]);
    expect(page.body).toContain(`return_to=%2Finstances%2F${id}${encodeURIComponent(path)}"`);
  }
  const pressed = await other.post(`/instances/${id}/contacts/pause`);
  expect(pressed.body).toContain(`return_to=%2Finstances%2F${id}"`);
  // Nobody else reads that there is such a company.
  expect((await web.browser().get(`/instances/${id}`)).text()).not.toContain('You were signed out');
  expect((await web.install(other, company)).status).toBe(200);
});

describe('signing in', () => {
  it('leads back to the address that was asked for, also after an attempt that failed', async () => {
    await copyAll(['{"id":"a"}', '{"id":"Ada L"}']);
    const path = `/instances/${id}/contacts?q=Ada%20L`;
    const other = web.browser();
    const begin = async () => /href="([^"]+)">Sign in with the service/.exec((await other.get(path)).body);
    const consent = await other.get((await begin())?.[1] ?? '');
    const failed = await other.post(consent.url, { decision: 'deny' });
    const again = `${web.url}/install?${new URLSearchParams({ return_to: path })}`;
    expect(failed.body).toContain(`href="${again}">Start again`);
    expect((await web.install(other, company, again)).url.href).toBe(web.url + path);
  });

  it('says so when it was another company', async () => {
    const { company: harbour } = await web.installed('Harbour & Finch');
    const other = web.browser();
    const start = /href="([^"]+)">Sign in with the service/.exec(
      (await other.get(`/instances/${id}`)).body,
    )?.[1];
    const { body } = await web.install(other, harbour, start);
    expect(body).toContain('You authorized Harbour &amp; Finch.');
    expect(body).toContain('Sign in with another company');
    expect(body).not.toContain('Riverside');
  });

  it.each([
    '//evil.example',
    '/logout',
    '/instances/ins_1/../../x',
    '/instances/ins_1/%2e%2E/ops',
    '/instances/\\evil',
    'x'.repeat(3_000),
  ])('takes no return address but one of an instance: %s', async (path) => {
    const start = `/install?${new URLSearchParams({ return_to: path })}`;
    const page = await web.install(web.browser(), company, start);
    expect(page.url.href).toBe(`${web.url}/instances/${id}`);
  });
});
