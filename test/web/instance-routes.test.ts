import { beforeEach, describe, expect, it } from 'vitest';
import type { HttpSession } from '../support/http-session.ts';
import { install, type StartedWeb, startWeb } from './start-web.ts';
import { at, instanceStatus, listStatus } from './status-fixtures.ts';

const HANDLER = { pending: 0, dead_letters: 0, last_error: null, next_try_at: null };

let web: StartedWeb;
let browser: HttpSession;
beforeEach(async () => {
  web = await startWeb(web ? { redis: web.redis } : {});
  browser = web.browser();
  await install(browser);
});

function show(changes: Parameters<typeof instanceStatus>[0]) {
  web.domain.instances.set('ins_1', instanceStatus(changes));
  return browser.get('/instances/ins_1');
}

function actions(body: string): string[] {
  const shown = body.replace(/<details[^>]* hidden>.*?<\/details>/gs, '');
  return [...shown.matchAll(/action="\/instances\/ins_1\/([\w-]+)"(?! data-show="[^"]*" hidden)/g)].map(
    ([, action = '']) => action,
  );
}

describe('the dashboard', () => {
  it('shows the state, the progress, the budget and the tokens', async () => {
    const { body, headers } = await show({});
    expect(body).toContain('Up to date');
    expect(body).toContain('4,012');
    expect(body).toContain('87 of 120 requests left in this window');
    expect(body).toContain('It will be renewed in 152 days');
    expect(body).toContain('<time data-time="token.expires" datetime="2025-11-10T12:00:00.000Z">');
    expect(headers.get('cache-control')).toBe('no-store');
  });

  it.each([
    ['active', ['sync', 'pause', 'logout-others', 'disconnect']],
    ['paused', ['resume', 'logout-others', 'disconnect']],
    ['needs_reauthorization', ['logout-others', 'disconnect']],
    ['disconnected', ['logout-others', 'disconnect']],
  ] as const)('offers what makes sense when %s', async (status, offered) => {
    expect(actions((await show({ status })).body)).toEqual(offered);
  });

  it('offers to take a company off the list once nothing is kept of it', async () => {
    expect(actions((await show({ status: 'disconnected', has_copy: false })).body)).toEqual(['forget']);
  });

  it('deletes a copy in which every record is marked as deleted', async () => {
    const resources = { contacts: listStatus({ stored: 0 }) };
    const page = await show({ status: 'disconnected', has_copy: true, resources });
    expect(actions(page.body)).toEqual(['logout-others', 'disconnect']);
    const deleted = await browser.submit(page.form('/instances/ins_1/disconnect'));
    expect(deleted.body).toContain('>The copied data is deleted.<');
    expect(web.domain.calls).toContain('disconnect and delete ins_1');
  });

  it('says once why a new authorization is needed', async () => {
    const { body } = await show({
      status: 'needs_reauthorization',
      notice: 'The service does not accept the refresh token any more. Authorize the app again to go on.',
      resources: { contacts: listStatus({ state: 'waiting', waiting_for: 'turn' }) },
    });
    expect(body).toMatch(/data-text="state\.next"[^>]* hidden>/);
    expect(body.match(/refresh token any more/g)).toHaveLength(1);
    expect(body).not.toContain('Waiting for its turn');
  });

  it('hides the sync while everything is under way', async () => {
    const busy = listStatus({ state: 'running' });
    const { body } = await show({ resources: { contacts: busy, conversations: busy } });
    expect(actions(body)).toEqual(['pause', 'logout-others', 'disconnect']);
  });

  it.each([
    ['needs_reauthorization', 'Authorize again'],
    ['disconnected', 'Install again'],
  ] as const)('leads back to the install when %s', async (status, words) => {
    expect((await show({ status })).body).toMatch(new RegExp(`href="${web.url}/install">${words}`));
  });

  it('escapes what the service or a company says, and prints no undefined', async () => {
    const { body } = await show({
      name: '<script>alert(1)</script>',
      notice: '"<img src=x>',
      resources: { contacts: listStatus({ error: "<b onclick='x'>" }) },
    });
    expect(body).not.toMatch(/<script>|<img src=x|<b onclick/);
    expect(body).toContain('&lt;script&gt;alert(1)&lt;/script&gt;');
    expect(body).not.toMatch(/undefined|NaN|\[object/);
  });

  it('says that a sync holds its deletions, and confirms them by a button', async () => {
    const resources = { contacts: listStatus({ held_deletions: 60, stored: 100 }) };
    const page = await show({ resources });
    expect(page.body).toContain('This sync would delete 60 of 100 contacts. Nothing was deleted.');
    expect(page.body).not.toMatch(/class="pill"[^>]*"good"|Up to date|data-show="contacts.held" hidden/);
    const done = await browser.submit(page.form('/instances/ins_1/contacts/confirm-deletions'));
    expect(web.domain.calls).toContain('confirm ins_1 contacts');
    expect(done.body).toContain('The deletions are confirmed');
    expect((await show({})).body).toContain('data-show="contacts.held" hidden');
  });

  it('says what an error means, with its details, as text', async () => {
    const contacts = listStatus({ state: 'failed', error_kind: 'refused', error: 'Refused (<b>403</b>).' });
    const { body } = await show({ resources: { contacts } });
    expect(body).toContain('The service refuses the app’s request. Authorize the app again');
    expect(body).toContain('Refused (&lt;b&gt;403&lt;/b&gt;).');
  });

  it('shows on the page of problems what there is, as text, or that there is nothing', async () => {
    await show({});
    expect((await browser.get('/instances/ins_1/problems')).body).toContain('There are no problems.');
    const problems = {
      rejected: 7,
      rejected_records: [{ reason: 'It has <b>no</b> id.', excerpt: '<img>', length: 5, at: at(0) }],
      dead_letters: [{ id: '#7', error: 'db: <leads> is unknown', at: at(0) }],
    };
    await show({ name: '<i>Ω</i>', resources: { contacts: listStatus({ problems }) } });
    const { body } = await browser.get('/instances/ins_1/problems');
    for (const text of ['It has &lt;b&gt;no&lt;/b&gt; id.', '&lt;img&gt;', '&lt;i&gt;Ω', 'And 6 more.']) {
      expect(body).toContain(text);
    }
    expect(body).toContain('href="/instances/ins_1/contacts?record=%237"><code dir="auto">#7</code>');
    expect(body).toContain('db: &lt;leads&gt; is unknown');
    expect(body).not.toMatch(/There are no problems|<b>|<img>|<i>|undefined/);
  });

  it('answers the same facts as JSON', async () => {
    await show({ name: 'Ω' });
    expect((await browser.get('/instances/ins_1/status')).json()).toEqual(instanceStatus({ name: 'Ω' }));
  });
});

describe('the buttons', () => {
  it.each([
    ['sync', 'active', 'sync ins_1'],
    ['pause', 'active', 'pause ins_1'],
    ['resume', 'paused', 'resume ins_1'],
    ['disconnect', 'active', 'disconnect ins_1'],
  ] as const)('%s, say so once, and lead back', async (action, status, call) => {
    const page = await show({ status });
    const form = page.form(`/instances/ins_1/${action}`);
    const answer = await browser.submit(form, {}, { follow: false });
    expect(answer.status).toBe(303);
    expect(answer.location?.pathname).toBe('/instances/ins_1');
    expect(web.domain.calls).toContain(call);
    expect((await browser.get(answer.location ?? '')).body).toContain('class="flash" data-tone="good"');
    expect((await browser.get('/instances/ins_1')).body).not.toContain('class="flash"');
  });

  it.each([
    ['sync', 'sync'],
    ['retry', 'retry'],
    ['replay', 'replay'],
    ['confirm-deletions', 'confirm'],
  ])('%s works for one list, and for all', async (action, call) => {
    await show({ resources: { contacts: listStatus({ handler: HANDLER }) } });
    for (const [path, of] of [
      ['', ''],
      ['/contacts', ' contacts'],
    ]) {
      const answer = await browser.post(`/instances/ins_1${path}/${action}`, {}, { follow: false });
      expect(answer.location?.href).toBe(`${web.url}/instances/ins_1?done=${action}`);
      expect(web.domain.calls).toContain(`${call} ins_1${of}`);
    }
  });

  it('offer to try again what the handler did not take, and to replay', async () => {
    const problems = { ...listStatus().problems, dead_letters: [{ id: 'crd_1', error: 'No', at: at(0) }] };
    const contacts = listStatus({ handler: { ...HANDLER, dead_letters: 1 }, problems });
    const page = await show({ resources: { contacts, conversations: listStatus({ handler: HANDLER }) } });
    expect(page.body).toContain('data-show="conversations.retry" hidden');
    for (const path of ['/contacts/retry', '/retry', '/contacts/replay', '/replay']) {
      await browser.submit(page.form(`/instances/ins_1${path}`));
    }
    expect(web.domain.calls.slice(1)).toEqual([
      'retry ins_1 contacts',
      'retry ins_1',
      'replay ins_1 contacts',
      'replay ins_1',
    ]);
  });

  it.each(['retry', 'replay'])('do nothing without a handler: %s', async (action) => {
    expect((await show({})).body).not.toMatch(/Replay|Try again|action="[^"]*\/retry"/);
    expect((await browser.post(`/instances/ins_1/${action}`)).body).toContain('Nothing was done');
    expect(web.domain.calls).toEqual(['exchange ins_1']);
  });

  it('log other browsers out, and not this one', async () => {
    const other = web.browser();
    await install(other);
    const page = await browser.submit((await show({})).form('/instances/ins_1/logout-others'));
    expect(page.body).toContain('Every other browser is logged out');
    expect((await other.get('/instances/ins_1')).status).toBe(404);
  });

  it('delete the copied data only when that was ticked', async () => {
    const form = (await show({})).form('/instances/ins_1/disconnect');
    await browser.submit(form, { delete_data: 'yes' });
    expect(web.domain.calls).toContain('disconnect and delete ins_1');
  });

  it('delete the copy of a company that is disconnected, which then can leave the list', async () => {
    const page = await show({ status: 'disconnected' });
    const deleted = await browser.submit(page.form('/instances/ins_1/disconnect'));
    expect(web.domain.calls).toContain('disconnect and delete ins_1');
    expect(deleted.body).toContain('>The copied data is deleted.<');
    const emptied = await show({ status: 'disconnected', has_copy: false });
    const front = await browser.submit(emptied.form('/instances/ins_1/forget'));
    expect(front.url.pathname).toBe('/');
    expect(front.body).toContain('off the list');
    expect(front.body).not.toContain('Riverside Dental');
    expect((await browser.get('/instances/ins_1')).status).toBe(404);
  });

  it('forget no company that has a copy, and disconnect none twice', async () => {
    const { fields } = (await show({ status: 'disconnected' })).form('/instances/ins_1/disconnect');
    const kept = await browser.post('/instances/ins_1/forget', fields);
    expect(kept.body).toContain('Nothing was done');
    const again = await browser.post('/instances/ins_1/disconnect');
    expect(again.body).toContain('Nothing was done');
    expect(web.domain.calls).toEqual(['exchange ins_1']);
  });

  it('do nothing in a state where they make no sense', async () => {
    const form = (await show({})).form('/instances/ins_1/pause');
    await show({ status: 'disconnected' });
    const page = await browser.submit(form);
    expect(page.body).toContain('Nothing was done');
    expect(web.domain.calls).not.toContain('pause ins_1');
  });

  it('refuse a form of another site', async () => {
    const headers = { 'sec-fetch-site': 'cross-site' };
    for (const path of ['sync', 'contacts/sync', 'contacts/replay', 'contacts/confirm-deletions']) {
      expect((await browser.post(`/instances/ins_1/${path}`, {}, { headers })).status).toBe(403);
    }
    expect(web.domain.calls).toEqual(['exchange ins_1']);
  });

  it('refuse a form that is too large, other actions, and other lists', async () => {
    for (const path of ['tags/sync', 'contacts/pause', 'contacts/disconnect', 'contacts/constructor']) {
      expect((await browser.post(`/instances/ins_1/${path}`)).status, path).toBe(404);
    }
    expect((await browser.post('/instances/ins_1/sync', { x: 'x'.repeat(20_000) })).status).toBe(413);
    expect((await browser.post('/instances/ins_1/constructor', {})).status).toBe(404);
  });
});

describe('an instance of somebody else', () => {
  const paths = [
    ...['', '/status', '/live', '/problems', '/contacts', '/contacts/crd_1', '/contacts.ndjson'],
    '/changes/contacts.ndjson?after=x',
  ];

  it.each(paths)('is not there: GET %s', async (path) => {
    const stranger = web.browser();
    await install(stranger, 'ins_2');
    const foreign = await stranger.get(`/instances/ins_1${path}`);
    const missing = await stranger.get(`/instances/ins_9${path}`);
    expect(foreign.status).toBe(404);
    const withoutId = (text: string) => text.replace(/[\da-f-]{36}/g, '');
    expect(withoutId(foreign.body)).toBe(withoutId(missing.body));
    expect((await web.browser().get(`/instances/ins_1${path}`)).status).toBe(404);
  });

  it.each(['sync', 'pause', 'resume', 'disconnect', 'forget', 'contacts/replay'])(
    'is not there: POST %s',
    async (action) => {
      const stranger = web.browser();
      const { fields } = (await install(stranger, 'ins_2')).form('/instances/ins_2/pause');
      expect((await stranger.post(`/instances/ins_1/${action}`, fields)).status).toBe(404);
      expect((await web.browser().post(`/instances/ins_1/${action}`)).status).toBe(404);
      expect(web.domain.calls.filter((call) => call.endsWith('ins_1'))).toEqual(['exchange ins_1']);
    },
  );

  it('is an error object for programs', async () => {
    const answer = await web.browser().get('/instances/ins_1/status');
    expect(answer.json()).toMatchObject({ _error: { status: 404, title: 'Not found' } });
  });
});
