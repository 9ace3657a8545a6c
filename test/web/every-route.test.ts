import { request } from 'node:http';
import type { Router } from 'express';
import { beforeAll, describe, expect, it } from 'vitest';
import type { HttpSession } from '../support/http-session.ts';
import { install, type StartedWeb, startWeb } from './start-web.ts';

/** What needs no instance; whatever is not among them has to be somebody's, and is tried as somebody else. */
const PUBLIC = ['/', '/install', '/oauth/callback', '/logout', '/healthz', '/readyz', '/metrics', '/ops'];

interface Route {
  method: string;
  path: string;
}

interface Layer {
  route?: { path: string; methods: Record<string, boolean> };
  handle: Partial<Router>;
}

/** Every route of the app, as Express knows them. */
function routesOf(stack: Layer[]): Route[] {
  return stack.flatMap(({ route, handle }) => {
    if (route) return Object.keys(route.methods).map((method) => ({ method, path: route.path }));
    return handle.stack ? routesOf(handle.stack as unknown as Layer[]) : [];
  });
}

const VALUES: Record<string, string[]> = {
  id: ['ins_1'],
  action: ['sync', 'retry', 'pause', 'resume', 'logout-others', 'disconnect', 'forget', 'other'],
  resource: ['contacts', 'conversations', 'other'],
  recordId: ['crd_1'],
};

/** Every address of a pattern, with every value that its places can have. */
function addressesOf(path: string): string[] {
  const [, name] = /:(\w+)/.exec(path) ?? [];
  if (name === undefined) return [path];
  const values = VALUES[name];
  if (values === undefined) throw new Error(`No values are known for :${name} of ${path}`);
  return values.flatMap((value) => addressesOf(path.replace(`:${name}`, value)));
}

const overview = async () => {
  return { instances: [], page: 1, total: 0, states: {}, runs: {}, queues: [], workers: 1 };
};

let web: StartedWeb;
let routes: Route[];
beforeAll(async () => {
  web = await startWeb({
    operations: { password: 'the words', overview },
  });
  routes = routesOf(web.app.router.stack as unknown as Layer[]);
  const owner = web.browser();
  await install(owner);
  const record = { id: 'crd_1', document: '{"id":"crd_1"}', isCut: false, updatedAt: 0, deletedAt: null };
  web.domain.records.set('ins_1/contacts', [record]);
  web.domain.records.set('ins_1/conversations', [record]);
});

async function ask(session: HttpSession, method: string, address: string, fields: URLSearchParams) {
  if (method === 'post') return session.post(address, fields);
  if (method === 'get') return session.get(address);
  throw new Error(`This test does not know how to send ${method}`);
}

describe('every route of the app', () => {
  it('is found', () => {
    expect(routes.length).toBeGreaterThan(12);
    expect(routes).toContainEqual({ method: 'get', path: '/instances/:id/live' });
    expect(PUBLIC.filter((path) => !routes.some((route) => route.path === path))).toEqual([]);
  });

  it('that is an instance’s answers 404 to another session and to none, whatever is sent', async () => {
    const stranger = web.browser();
    const { fields } = (await install(stranger, 'ins_2')).form('/instances/ins_2/pause');
    const nobody = web.browser();
    const before = [...web.domain.calls];
    const owned = routes.filter(({ path }) => !PUBLIC.includes(path));
    expect(owned.length).toBeGreaterThan(5);
    for (const { method, path } of owned) {
      expect(path).toMatch(/^\/instances\/:id(?:\/|$)/);
      for (const address of addressesOf(path)) {
        for (const session of [stranger, nobody]) {
          const answer = await ask(session, method, address, fields);
          expect(answer.status, `${method} ${address}`).toBe(404);
          expect(answer.body).not.toContain('Riverside Dental');
        }
      }
    }
    expect(web.domain.calls).toEqual(before);
  });

  it('that is an instance’s is kept by no cache, whatever it answers', async () => {
    const owner = web.browser();
    await install(owner);
    const headers = { cookie: owner.cookies.header(new URL(web.url)) ?? '' };
    const owned = routes.filter(({ method, path }) => method === 'get' && !PUBLIC.includes(path));
    const statuses = new Set<number>();
    for (const address of owned.flatMap(({ path }) => addressesOf(path))) {
      const answer = await fetch(web.url + address, { headers });
      // A live stream has no end.
      await answer.body?.cancel();
      expect(answer.headers.get('cache-control'), address).toMatch(/^no-store\b/);
      statuses.add(answer.status);
    }
    expect(statuses).toEqual(new Set([200, 404]));
  });

  it('that changes something refuses what comes from another site, with 403', async () => {
    const owner = web.browser();
    const { fields } = (await install(owner, 'ins_1')).form('/instances/ins_1/pause');
    const before = [...web.domain.calls];
    const changing = routes.filter(({ method }) => method !== 'get');
    expect(changing.length).toBeGreaterThan(1);
    for (const { method, path } of changing) {
      expect(method).toBe('post');
      for (const address of addressesOf(path)) {
        for (const headers of [
          { origin: 'https://evil.example' },
          { origin: `${web.url}.evil.example` },
          { origin: 'null', 'sec-fetch-site': 'cross-site' },
          { 'sec-fetch-site': 'cross-site' },
          { origin: web.url, 'sec-fetch-site': 'same-site' },
        ] as Record<string, string>[]) {
          const answer = await owner.post(address, fields, { headers });
          expect(answer.status, `${address} ${JSON.stringify(headers)}`).toBe(403);
          expect(answer.body).toContain('Another site');
        }
      }
    }
    expect(web.domain.calls).toEqual(before);
    const own = { origin: 'null', 'sec-fetch-site': 'same-origin' };
    expect((await owner.post('/instances/ins_1/sync', fields, { headers: own })).status).toBe(200);
    expect(web.domain.calls).toContain('sync ins_1');
  });

  it('is a path: what is none is unknown, with the page for that', async () => {
    for (const path of ['*', '*a']) {
      const status = await new Promise((resolve, reject) => {
        const sent = request(web.url, { path }, (answer) => resolve(answer.resume().statusCode));
        sent.on('error', reject).end();
      });
      expect(status, path).toBe(404);
    }
  });

  it('that changes something takes what its own pages send, by PUBLIC_URL or the name they were asked by', async () => {
    const named = await startWeb({ redis: web.redis, publicUrl: 'http://app.example' });
    const owner = named.browser();
    const { fields } = (await install(owner)).form('/instances/ins_1/sync');
    const send = async (origin: string) =>
      (await owner.post('/instances/ins_1/sync', fields, { headers: { origin } })).status;
    expect([await send('http://app.example'), await send(named.url)]).toEqual([200, 200]);
    expect(await send('http://other.example')).toBe(403);
  });
});
