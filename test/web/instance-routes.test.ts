import { beforeEach, describe, expect, it } from 'vitest';
import type { HttpBrowser } from '../support/http-browser.ts';
import { install, type StartedWeb, startWeb } from './start-web.ts';
import { at, instanceStatus, listStatus, runJson } from './status-fixtures.ts';

const HANDLER = { pending: 0, dead_letters: 0, last_error: null, next_try_at: null };

let web: StartedWeb;
let browser: HttpBrowser;
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
  return [...body.matchAll(/action="\/instances\/ins_1\/([\w-]+)"/g)].map(([, action = '']) => action);
}

describe('the dashboard', () => {
  it('shows the state, the progress, the budget and the tokens', async () => {
    const { body, headers } = await show({});
    expect(body).toContain('Up to date');
    expect(body).toContain('4,012');
    expect(body).toContain('87 of 120 requests left in this window');
    expect(body).toContain('<time datetime="2025-11-10T12:00:00.000Z">10 Nov 2025, 12:00 UTC</time>');
    expect(body).toContain(
      'starts by itself <time datetime="2025-06-10T12:55:00.000Z" data-relative="ahead">in 55 min<',
    );
    expect(headers.get('cache-control')).toBe('no-store');
  });

  it('says when it was loaded, and offers to load it again', async () => {
    const { body } = await show({});
    expect(body).toMatch(
      /As of <time datetime="2025-06-10T12:00:00.000Z">[^<]+<\/time>\. <a href="\/instances\/ins_1">Reload/,
    );
  });

  it.each([
    ['active', ['sync', 'pause', 'logout-others', 'disconnect']],
    ['paused', ['resume', 'logout-others', 'disconnect']],
    ['needs_reauthorization', ['logout-others', 'disconnect']],
    ['disconnected', ['logout-others', 'disconnect']],
  ] as const)('offers what makes sense when %s', async (status, offered) => {
    expect(actions((await show({ status })).body)).toEqual(offered);
  });

  it('offers to take a company no longer lists the company once nothing is kept of it', async () => {
    expect(actions((await show({ status: 'disconnected', has_copy: false })).body)).toEqual(['forget']);
  });

  it('hides the sync while everything is under way', async () => {
    const busy = listStatus({ state: 'running' });
    const { body } = await show({ resources: { contacts: busy, conversations: busy } });
    expect(body).toContain('action="/instances/ins_1/sync" hidden>');
    const failing = listStatus({ state: 'waiting', waiting_for: 'retry', error_kind: 'timeout' });
    const { body: offered } = await show({ resources: { contacts: failing, conversations: busy } });
    expect(offered).toContain('action="/instances/ins_1/sync">');
  });

  it.each([
    ['needs_reauthorization', 'Authorize again'],
    ['disconnected', 'Install again'],
  ] as const)('leads to the authorization and back when %s', async (status, words) => {
    const { body } = await show({ status });
    expect(body).toContain(`href="${web.url}/install?return_to=%2Finstances%2Fins_1">${words}`);
  });

  it('escapes what the service or a company says, and prints no undefined', async () => {
    const { body } = await show({
      name: '<script>alert(1)</script>',
      company_id: '"<img src=x>',
      resources: {
        contacts: listStatus({
          problems: {
            ...listStatus().problems,
            dead_letters: [{ id: '1', error: "<b onclick='x'>", at: at(0) }],
          },
        }),
      },
    });
    expect(body).not.toMatch(/<script>|<img src=x|<b onclick/);
    expect(body).toContain('&lt;script&gt;alert(1)&lt;/script&gt;');
    expect(body).not.toMatch(/undefined|NaN|\[object/);
  });

  it('says that a sync holds its deletions, and confirms them by a button', async () => {
    const resources = { contacts: listStatus({ held_deletions: 60, stored: 100 }) };
    const page = await show({ resources });
    expect(page.body).toContain('The last sync would delete 60 of 100 contacts. Nothing was deleted.');
    expect(page.body).not.toContain('Up to date');
    const done = await browser.submit(page.form('/instances/ins_1/contacts/confirm-deletions'));
    expect(web.domain.calls).toContain('confirm ins_1 contacts');
    expect(done.body).toContain('You confirmed the deletions');
  });

  it('says what an error means, and nothing of the inside', async () => {
    const contacts = listStatus({
      state: 'failed',
      error_kind: 'credentials',
      error: 'CLIENT_ID: fetch failed',
    });
    const { body } = await show({ resources: { contacts } });
    expect(body).toContain('The service no longer knows this app.');
    expect(body).toContain('Write to help@test.example');
    expect(body).not.toMatch(/CLIENT_ID|fetch failed/);
  });

  it('shows on the page of problems what there is, as text, or that there is nothing', async () => {
    await show({});
    expect((await browser.get('/instances/ins_1/problems')).body).toContain('No problems.');
    const problems = {
      rejected: 7,
      rejected_records: [{ reason: 'It has <b>no</b> id.', excerpt: '<img>', length: 5, at: at(0) }],
      dead_letters: [{ id: '#7', error: 'db: <leads> is unknown', at: at(0) }],
    };
    const dashboard = await show({ name: '<i>Ω</i>', resources: { contacts: listStatus({ problems }) } });
    expect(dashboard.body).toContain('db: &lt;leads&gt; is unknown');
    const { body } = await browser.get('/instances/ins_1/problems');
    for (const text of ['It has &lt;b&gt;no&lt;/b&gt; id.', '&lt;img&gt;', '&lt;i&gt;Ω', 'And 6 more.']) {
      expect(body).toContain(text);
    }
    expect(body).toContain('href="/instances/ins_1/contacts?record=%237"><code dir="auto">#7</code>');
    expect(body).not.toMatch(/There are no problems|<b>|<img>|<i>|undefined/);
  });
});

describe('the status', () => {
  it('has the same facts as JSON', async () => {
    await show({ name: 'Ω' });
    expect((await browser.get('/instances/ins_1/status')).json()).toEqual(instanceStatus({ name: 'Ω' }));
  });

  it('answers 304 as long as nothing but the clock changes', async () => {
    const tag = /data-tag="([^"]+)"/.exec((await show({})).body)?.[1]?.replaceAll('&quot;', '"') ?? '';
    const ask = () =>
      browser.get('/instances/ins_1/status', {
        headers: { 'if-none-match': tag, 'cache-control': 'no-cache' },
      });
    await show({ now: at(1_000) });
    expect((await ask()).status).toBe(304);
    await show({ status: 'paused' });
    expect((await ask()).status).toBe(200);
  });
});

describe('the history', () => {
  const failed = runJson({
    id: 2,
    state: 'failed',
    error_kind: 'server_error',
    error: '503 of /inside',
    refused: 4,
  });

  it('stands on the dashboard, newest first, without what is inside', async () => {
    web.domain.runs = { contacts: [runJson()], conversations: [failed] };
    const { body } = await show({});
    const table = body.slice(body.lastIndexOf('Last syncs'));
    expect(table.indexOf('Conversations')).toBeLessThan(table.indexOf('Contacts'));
    expect(table).toContain('The service has an error of its own.');
    expect(body).not.toContain('/inside');
  });

  it('is a page with a picture, or JSON when that is asked for', async () => {
    web.domain.runs = { contacts: [failed, runJson()] };
    const { body } = await browser.get('/instances/ins_1/runs');
    expect(body).toContain('<title>10 Jun 2025, 11:54 UTC: 12 created, 3 changed, 1 deleted</title>');
    for (const [label, text] of [
      ['Records', '180'],
      ['New', '12'],
      ['Changed', '3'],
      ['Deleted', '1'],
      ['429s', '4'],
    ]) {
      expect(body).toContain(`<td data-label="${label}">${text}</td>`);
    }
    expect(body).toContain('No sync yet.');
    const json = await browser.get('/instances/ins_1/runs', { headers: { accept: 'application/json' } });
    expect(json.json()).toEqual({ contacts: [failed, runJson()] });
  });
});

describe('the buttons', () => {
  it.each([
    ['sync', 'active', 'sync ins_1'],
    ['pause', 'active', 'pause ins_1'],
    ['resume', 'paused', 'resume ins_1'],
    ['disconnect', 'active', 'disconnect ins_1'],
  ] as const)('%s, say so once, lead back, and are noted', async (action, status, call) => {
    const page = await show({ status });
    const answer = await browser.submit(page.form(`/instances/ins_1/${action}`), {}, { follow: false });
    expect(answer.status).toBe(303);
    expect(answer.location?.pathname).toBe('/instances/ins_1');
    expect(web.domain.calls).toContain(call);
    expect(web.domain.noted).toEqual([
      expect.objectContaining({ action, instanceId: 'ins_1', by: 'administrator' }),
    ]);
    expect((await browser.get(answer.location ?? '')).body).toContain('class="flash" data-tone="good"');
    expect((await browser.get('/instances/ins_1')).body).not.toContain('class="flash"');
  });

  it.each([
    ['sync', 'sync'],
    ['pause', 'pause'],
    ['retry', 'retry'],
    ['replay', 'replay'],
    ['confirm-deletions', 'confirm'],
  ])('%s works for one list, and for all', async (action, call) => {
    const handler = { ...HANDLER, dead_letters: 1 };
    await show({ resources: { contacts: listStatus({ handler, held_deletions: 60 }) } });
    for (const [path, of] of [
      ['/contacts', ' contacts'],
      ['', ''],
    ]) {
      const answer = await browser.post(`/instances/ins_1${path}/${action}`, {}, { follow: false });
      const list = path === '' ? '' : '&list=contacts';
      expect(answer.location?.href).toBe(`${web.url}/instances/ins_1?done=${action}${list}`);
      expect(web.domain.calls).toContain(`${call} ins_1${of}`);
    }
  });

  it('resume a list that is paused by itself, and show it', async () => {
    const page = await show({
      resources: { contacts: listStatus({ paused: true }), conversations: listStatus() },
    });
    expect(page.body).not.toContain('action="/instances/ins_1/contacts/sync"');
    await browser.submit(page.form('/instances/ins_1/contacts/resume'));
    expect(web.domain.calls).toContain('resume ins_1 contacts');
    expect((await show({ resources: { contacts: listStatus({ paused: true }) } })).body).toContain(
      'Every list is paused.',
    );
  });

  it.each([
    ['15', '15'],
    ['', 'null'],
  ])('set the interval of a list: “%s”', async (minutes, given) => {
    const form = (await show({})).form('/instances/ins_1/contacts/interval');
    expect(form.fields.get('minutes')).toBe('60');
    await browser.submit(form, { minutes });
    expect(web.domain.calls).toContain(`interval ins_1 contacts ${given}`);
  });

  it.each(['0', '-1', '1.5', 'x', '1e2', '44641', '9999999'])(
    'refuse the interval %s, and say what is possible',
    async (minutes) => {
      await show({});
      const answer = await browser.post('/instances/ins_1/contacts/interval', { minutes });
      expect(answer.status).toBe(400);
      expect(answer.body).toContain('from 1 to 44,640');
    },
  );

  it('offer to try again what the handler did not take, and to replay', async () => {
    const problems = { ...listStatus().problems, dead_letters: [{ id: 'crd_1', error: 'No', at: at(0) }] };
    const contacts = listStatus({ handler: { ...HANDLER, dead_letters: 1 }, problems });
    const page = await show({ resources: { contacts, conversations: listStatus({ handler: HANDLER }) } });
    expect(page.body).not.toContain('conversations/retry');
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
    expect(web.domain.noted).toEqual([]);
  });

  it.each(['sync', 'pause', 'disconnect', 'forget', 'x'])(
    'say nothing that is not true now: done=%s',
    async (done) => {
      await show({});
      expect((await browser.get(`/instances/ins_1?done=${done}`)).body).not.toContain('class="flash"');
    },
  );

  it('say that one list is paused, and not all of it', async () => {
    await show({ resources: { contacts: listStatus({ paused: true }), conversations: listStatus() } });
    const { body } = await browser.get('/instances/ins_1?done=pause&list=contacts');
    expect(body).toContain('The list is paused. The other lists go on.');
  });

  it('ask what is meant by a name without the tick that deletes', async () => {
    await show({});
    const answer = await browser.post('/instances/ins_1/disconnect', { company_name: 'Riverside Dental' });
    expect(answer.status).toBe(400);
    expect(answer.body).toContain('href="/instances/ins_1">Back');
    expect(web.domain.calls).toEqual(['exchange ins_1']);
  });

  it('take a record’s id as it came, or as a person types it', async () => {
    await show({});
    web.domain.known = new Set([' lead', '#7']);
    for (const id of [' lead', '7']) await browser.post('/instances/ins_1/contacts/erase', { id });
    expect(web.domain.calls.slice(1)).toEqual(['erase ins_1 contacts  lead', 'erase ins_1 contacts #7']);
    expect((await browser.post('/instances/ins_1/contacts/erase', { id: '8' })).status).toBe(404);
  });

  it('log other browsers out, and not this one', async () => {
    const other = web.browser();
    await install(other);
    const page = await browser.submit((await show({})).form('/instances/ins_1/logout-others'));
    expect(page.body).toContain('Every other browser is logged out');
    expect((await other.get('/instances/ins_1')).status).toBe(404);
  });

  it.each([[{}], [{ company_name: 'Riverside' }]])(
    'delete no data without the company’s name: %j',
    async (fields) => {
      await show({});
      const answer = await browser.post('/instances/ins_1/disconnect', { delete_data: 'yes', ...fields });
      expect(answer.status).toBe(400);
      expect(answer.body).toContain('type the company’s name: Riverside Dental. Nothing was done.');
      expect(web.domain.calls).toEqual(['exchange ins_1']);
    },
  );

  it('disconnect and delete the data by the company’s name, however it is spelled', async () => {
    await show({});
    const fields = { delete_data: 'yes', company_name: ' riverside  DENTAL ' };
    const page = await browser.post('/instances/ins_1/disconnect', fields);
    expect(web.domain.calls).toContain('disconnect and delete ins_1');
    expect(web.domain.noted[0]).toMatchObject({ action: 'disconnect and delete data' });
    expect(page.body).toContain('To end the permission itself, remove the app at the service.');
  });

  it('delete the copy of a company that is disconnected, which then can leave the list', async () => {
    const page = await show({ status: 'disconnected' });
    await browser.submit(page.form('/instances/ins_1/disconnect'), { company_name: 'Riverside Dental' });
    expect(web.domain.calls).toContain('disconnect and delete ins_1');
    const emptied = await show({ status: 'disconnected', has_copy: false });
    const front = await browser.submit(emptied.form('/instances/ins_1/forget'));
    expect(front.url.pathname).toBe('/');
    expect(front.body).toContain('no longer lists the company');
    expect(front.body).not.toContain('Riverside Dental');
    expect((await browser.get('/instances/ins_1')).status).toBe(404);
  });

  it('forget no company that has a copy, and disconnect none twice', async () => {
    await show({ status: 'disconnected' });
    for (const action of ['forget', 'disconnect']) {
      expect((await browser.post(`/instances/ins_1/${action}`)).body).toContain('Nothing was done');
    }
    expect(web.domain.calls).toEqual(['exchange ins_1']);
  });

  it('do nothing in a state where they make no sense', async () => {
    const form = (await show({})).form('/instances/ins_1/pause');
    await show({ status: 'disconnected' });
    expect((await browser.submit(form)).body).toContain('Nothing was done');
    expect(web.domain.calls).not.toContain('pause ins_1');
  });

  it('refuse a form of another site', async () => {
    const headers = { 'sec-fetch-site': 'cross-site' };
    for (const path of ['sync', 'contacts/sync', 'contacts/replay', 'contacts/erase']) {
      expect((await browser.post(`/instances/ins_1/${path}`, {}, { headers })).status).toBe(403);
    }
    expect(web.domain.calls).toEqual(['exchange ins_1']);
  });

  it('refuse a form that is too large, other actions, and other lists', async () => {
    for (const path of [
      'tags/sync',
      'contacts/forget',
      'contacts/disconnect',
      'contacts/constructor',
      'erase',
      'interval',
    ]) {
      expect((await browser.post(`/instances/ins_1/${path}`)).status, path).toBe(404);
    }
    expect((await browser.post('/instances/ins_1/sync', { x: 'x'.repeat(20_000) })).status).toBe(413);
    expect((await browser.post('/instances/ins_1/constructor', {})).status).toBe(404);
  });
});

describe('signing in', () => {
  /** From an address without access to the page behind the authorization of a company. */
  async function signIn(path: string, code: string) {
    const other = web.browser();
    const page = await other.get(path);
    const offer = /href="([^"]+)">Sign in with the service/.exec(page.body)?.[1] ?? '';
    const start = await other.get(offer, { follow: false });
    const state = start.location?.searchParams.get('state') ?? '';
    return other.get(`/oauth/callback?state=${state}&code=${code}`);
  }

  it('leads back to the address that was asked for', async () => {
    await show({});
    const page = await signIn('/instances/ins_1/contacts', 'ins_1');
    expect([page.status, page.url.pathname]).toEqual([200, '/instances/ins_1/contacts']);
  });

  it('leads back to a search or a record, also after an attempt that failed', async () => {
    await show({});
    web.domain.records.set('ins_1/contacts', []);
    const path = '/instances/ins_1/contacts?q=Ada%20L';
    expect((await signIn(path, 'ins_1')).url.href).toBe(web.url + path);
    web.domain.failure = 'denied';
    const failed = await signIn(path, 'ins_1');
    expect(failed.body).toContain(
      `href="${web.url}/install?${new URLSearchParams({ return_to: path })}">Start again`,
    );
  });

  it('says so when it was another company', async () => {
    await show({});
    web.domain.instances.set('ins_2', instanceStatus({ id: 'ins_2', name: 'Harbour & Finch' }));
    const page = await signIn('/instances/ins_1', 'ins_2');
    expect(page.url.pathname).toBe('/instances/ins_2');
    expect(page.body).toContain('You authorized Harbour &amp; Finch.');
    expect(page.body).toContain('Sign in with another company');
    expect(page.body).not.toContain('Riverside');
  });

  it('names the company that still needs its authorization, with a button for it', async () => {
    web.domain.instances.set('ins_2', instanceStatus({ id: 'ins_2', name: 'Harbour & Finch' }));
    await show({ status: 'needs_reauthorization' });
    const start = await browser.get('/install?return_to=/instances/ins_1', { follow: false });
    const state = start.location?.searchParams.get('state') ?? '';
    const page = await browser.get(`/oauth/callback?state=${state}&code=ins_2`);
    expect(page.body).toContain(
      'You authorized Harbour &amp; Finch. Riverside Dental still needs its authorization.',
    );
    expect(page.body).toMatch(/href="[^"]*return_to=%2Finstances%2Fins_1">Authorize Riverside Dental</);
  });

  it.each([
    '//evil.example',
    'https://evil.example',
    '/logout',
    '/instances/ins_1/../../x',
    '/instances/ins_1/%2e%2E/ops',
    '/instances/\\evil',
    'x'.repeat(3_000),
  ])('takes no return address but one of an instance: %s', async (path) => {
    const other = web.browser();
    const start = await other.get(`/install?${new URLSearchParams({ return_to: path })}`, { follow: false });
    const state = start.location?.searchParams.get('state') ?? '';
    const answer = await other.get(`/oauth/callback?state=${state}&code=ins_1`, { follow: false });
    expect(answer.location?.href).toBe(`${web.url}/instances/ins_1`);
  });
});

describe('an instance of somebody else', () => {
  const paths = [
    ...[
      '',
      '/status',
      '/runs',
      '/problems',
      '/contacts',
      '/contacts/crd_1',
      '/contacts.ndjson',
      '/contacts.csv',
    ],
    '/changes/contacts.ndjson?after=x',
  ];

  it.each(paths)('is not there: GET %s', async (path) => {
    const stranger = web.browser();
    await install(stranger, 'ins_2');
    const foreign = await stranger.get(`/instances/ins_1${path}`);
    const missing = await stranger.get(`/instances/ins_9${path}`);
    expect(foreign.status).toBe(404);
    const withoutId = (text: string) => text.replace(/[\da-f-]{36}|ins_\d/g, '');
    expect(withoutId(foreign.body)).toBe(withoutId(missing.body));
    expect((await web.browser().get(`/instances/ins_1${path}`)).status).toBe(404);
  });

  it.each(['sync', 'pause', 'resume', 'disconnect', 'forget', 'contacts/replay', 'contacts/erase'])(
    'is not there: POST %s',
    async (action) => {
      const stranger = web.browser();
      await install(stranger, 'ins_2');
      expect((await stranger.post(`/instances/ins_1/${action}`)).status).toBe(404);
      expect((await web.browser().post(`/instances/ins_1/${action}`)).status).toBe(404);
      expect(web.domain.calls.filter((call) => call.endsWith('ins_1'))).toEqual(['exchange ins_1']);
    },
  );

  it('is an error object for programs', async () => {
    const answer = await web.browser().get('/instances/ins_1/status');
    expect(answer.json()).toMatchObject({ _error: { status: 404, title: 'Not found' } });
  });
});
