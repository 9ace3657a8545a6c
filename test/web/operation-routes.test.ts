import { beforeAll, describe, expect, it } from 'vitest';
import { NOW } from '../store/test-store.ts';
import { makeTrouble, PASSWORD, type StartedWeb, startWeb } from './start-web.ts';

function basic(password: string): { authorization: string } {
  return { authorization: `Basic ${Buffer.from(`anyone:${password}`).toString('base64')}` };
}

const headers = basic(PASSWORD);

let web: StartedWeb;
let odd: string;
beforeAll(async () => {
  web = await startWeb();
  ({ id: odd } = await web.installed('<i>Odd</i>'));
  await makeTrouble(web.store, odd);
});

function show(query: string) {
  return web.browser().get(`/ops${query}`, { headers });
}

describe('/ops', () => {
  it('shows why each instance waits, and sums of all', async () => {
    const { status, body } = await show('');
    expect(status).toBe(200);
    for (const text of [
      ...['&lt;i&gt;Odd&lt;/i&gt;', `href="/ops/instances/${odd}"`, 'Conversations'],
      ...['refused: It broke: &lt;403&gt;.', 'fails since 1 Mar 2026, 11:59 UTC'],
      ...['dead letters: 1', 'rejected records: 1', 'deletions held: 12', 'handler: It is broken.'],
      ...['1 instance, the worst first', '12 in the copy'],
    ]) {
      expect(body).toContain(text);
    }
  });

  it('names what is wrong with whom, since when, and what to do', async () => {
    for (const path of ['', `/instances/${odd}`]) {
      const text = (await show(path)).text();
      for (const line of [
        'Contacts: Fails, began just now . The reason stands with the list.',
        'Contacts: The handler refused: 1 dead letter, began just now .',
        'Conversations: paused by operator anna, began 15 min ago . Ask them, or resume it.',
      ]) {
        expect(text).toContain(line);
      }
    }
    const { body } = await show('?filter=failing');
    expect(body).toContain('<q dir="auto">It is broken.</q> Fix the handler or its target');
    expect(body).toMatch(/href="\/ops" data-tone="bad" aria-current="true"><strong>1<\/strong> Failing/);
    expect(body).toMatch(/href="\/ops\?filter=token" data-tone="off"><strong>0<\/strong>/);
    const help = await show('/help');
    for (const [, anchor = ''] of body.matchAll(/href="\/ops\/help#([^"]+)"/g)) {
      expect(help.body).toContain(`<section id="${anchor}"`);
    }
  });

  it('tells of queues and workers, or that Redis is away', async () => {
    expect((await show('')).body).toContain('Redis is away');
    web.process.queues = [{ name: 'sync', counts: { waiting: 3, delayed: 1_200 } }];
    const [startedAt, at] = [NOW - 3_600_000, NOW - 4_000];
    const worker = { id: 'w1', version: '1.2.3', startedAt, at, delivery: 'ready' };
    web.process.workers = [worker];
    const page = await show('');
    expect(page.body).toContain('sync: waiting 3, delayed 1,200');
    expect(page.text()).toContain(
      'w1 , version 1.2.3, up for 1 h, last heartbeat just now , delivery process: ready',
    );
    web.process.workers = [{ ...worker, at: null, delivery: '' }];
    expect((await show('')).text()).toContain('up for 1 h, without heartbeats: an older version');
    for (const workers of [[], [{ ...worker, at: NOW - 60_000 }]]) {
      web.process.workers = workers;
      expect((await show('')).body).toContain('No worker process runs, so nothing is copied');
    }
  });

  it('says what the process is not ready for, and why', async () => {
    const readiness = async () => ({ ok: false, checks: { redis: 'ok', database: 'It is <locked>.' } });
    const page = await (await web.restart({ readiness })).get('/ops', { headers });
    expect(page.body).toContain('Not ready: database. It is &lt;locked&gt;.');
    expect(page.body).not.toContain('Not ready: redis');
    expect((await show('')).body).not.toContain('Not ready');
  });

  it('searches, filters, shows fifty a page, and keeps all of it on the way', async () => {
    const rows = Array.from({ length: 102 }, (_, n) => ({ id: `ins_many${n}`, name: `Many ${n}` }));
    const facts = { status: 'needs_reauthorization', installed_at: NOW } as const;
    await web.store.db.transact((tx) =>
      tx
        .insertInto('instances')
        .values(rows.map((row) => ({ ...row, ...facts })))
        .execute(),
    );
    const { body } = await show('?q=many&filter=attention&page=2');
    expect(body).toContain('href="/ops?filter=attention&amp;q=many&amp;page=3"');
    expect(body).toContain('<option value="attention" selected>Needs attention (103)</option>');
    expect(body).toContain('<option value="needs_reauthorization">Needs authorization (102)</option>');
    expect(body.match(/href="\/ops\/instances\/ins_many/g)).toHaveLength(50);
    expect((await show('?filter=dead_letters')).body).not.toContain('ins_many');
    expect((await show('?filter=constructor')).body).toContain('103 instances');
    expect((await show('')).body).toContain('rel="next" href="/ops?page=2"');
    expect((await show('?page=77')).body).toContain('Page 3 of 3');
    expect((await show('?page=-1')).body).toContain('Page 1 of 3');
  });

  it('asks a browser that sees the instance for nothing, whatever it sends', async () => {
    const { browser, id } = await web.installed('Own');
    for (const authorization of ['Basic c3RhZ2luZzpzZWNyZXQ=', 'Bearer x']) {
      const answer = await browser.get(`/instances/${id}/status`, { headers: { authorization } });
      expect(answer.status).toBe(200);
    }
  });
});

describe('the operator’s page of an instance', () => {
  const post = (path: string, fields = {}, more = {}) =>
    web.browser().post(`/ops/instances/${odd}${path}`, fields, { headers: { ...headers, ...more } });
  const noted = () => web.store.actions.list({ instanceId: odd, limit: 9 });

  it('has what went wrong, the runs, and every action behind a confirmation', async () => {
    const page = await show(`/instances/${odd}`);
    expect(page.body).toContain('It broke: &lt;403&gt;.');
    const form = /<details class="confirm">.*?action="\/ops\/instances\/\w+\/([^"]+)"/gs;
    const everywhere = ['sync', 'pause', 'retry', 'replay'];
    expect([...page.body.matchAll(form)].map(([, action]) => action)).toEqual([
      ...[...everywhere, 'confirm-deletions', 'disconnect'],
      ...everywhere.map((action) => `contacts/${action}`),
      ...['resume', 'confirm-deletions'].map((action) => `conversations/${action}`),
    ]);
    expect((await show('/instances/ins_9')).status).toBe(404);
  });

  it('takes no form of another site, and none without the password', async () => {
    const before = await noted();
    expect((await post('/sync', {}, { 'sec-fetch-site': 'cross-site' })).status).toBe(403);
    expect((await web.browser().post(`/ops/instances/${odd}/sync`)).status).toBe(401);
    expect(await noted()).toEqual(before);
  });

  const ofList = ['/contacts/erase', '/contacts/interval', '/contacts/disconnect'];
  it.each(['/logout-others', '/forget', ...ofList])('leaves to administrators: %s', async (path) => {
    expect((await post(path)).status).toBe(404);
  });

  it('acts, notes it, and logs it', async () => {
    const page = await post('/contacts/sync');
    expect(page.url.pathname).toBe(`/ops/instances/${odd}`);
    expect(page.body).toContain('A sync is under way.');
    const facts = { instanceId: odd, resource: 'contacts', action: 'sync', by: 'operator anyone' };
    expect((await noted())[0]).toMatchObject(facts);
    expect(web.log.lines).toContainEqual(expect.objectContaining({ ...facts, msg: 'action' }));
  });

  it('disconnects, and deletes the data by the company’s name alone', async () => {
    const fields = { delete_data: 'yes', company_name: 'Odd' };
    expect((await post('/disconnect', fields)).status).toBe(400);
    await post('/disconnect', { ...fields, company_name: '<i>Odd</i>' });
    expect(await web.deps.status.read(odd)).toMatchObject({ status: 'disconnected', has_copy: false });
  });
});

describe('the password of /ops', () => {
  it.each([
    ['without its end', PASSWORD.slice(0, -1)],
    ['with something behind it', `${PASSWORD} `],
    ['in capitals', PASSWORD.toUpperCase()],
    ['empty', ''],
    ['far too long', PASSWORD.repeat(500)],
    ['with a NUL', `${PASSWORD}\0`],
    ...['Basic', 'Basic !!', 'Basic bm9jb2xvbg==', 'Bearer x', 'Basic Og=='].map((text) => [text]),
  ])('is not taken: %s', async (authorization = '', password) => {
    const wrong = password === undefined ? { authorization } : basic(password);
    const refused = await web.browser().get('/ops', { headers: wrong });
    expect(refused.status).toBe(401);
    expect(refused.headers.get('www-authenticate')).toMatch(/^Basic /);
  });

  it('is wanted again for every request: no session of a browser opens the page', async () => {
    const browser = web.browser();
    expect((await browser.get('/ops', { headers })).status).toBe(200);
    expect((await browser.get('/ops')).status).toBe(401);
  });
});

describe('for machines', () => {
  it('says that it is alive, ready, and what it counts', async () => {
    const machine = web.browser();
    const ready = { status: 'ready', checks: { database: 'ok' } };
    expect((await machine.get('/healthz')).json()).toEqual({ status: 'alive' });
    expect((await machine.get('/readyz')).json()).toEqual(ready);
    const metrics = await machine.get('/metrics');
    expect(metrics.headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/);
    expect(metrics.body).toBe('up 1\n');
  });

  it('says when it is not ready', async () => {
    const checks = { redis: 'ECONNREFUSED' };
    const away = await web.restart({ readiness: async () => ({ ok: false, checks }) });
    const answer = await away.get('/readyz');
    expect(answer.status).toBe(503);
    expect(answer.json()).toEqual({ status: 'not ready', checks });
  });
});
