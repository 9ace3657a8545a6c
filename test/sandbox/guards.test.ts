import { describe, expect, test } from 'vitest';
import { ROUTES } from '../../src/contract/api/api.ts';
import { type GroupPart, GUARDS, guardLimit } from '../../src/contract/guards.ts';
import { HEADER } from '../../src/contract/headers.ts';
import { PLAN_LIMITS } from '../../src/contract/limits.ts';
import { at, startFrozen } from './support/test-sandbox.ts';

type Sent = [method: string, path: string, body?: object | undefined];

/** A body with this value for a part of a guard's key. */
const BODY_OF: Record<GroupPart, (value: string) => object> = {
  account: (account_id) => ({ account_id }),
  event: (type) => ({ type, object: { type: 'order', id: '1' } }),
  'channel type': (type) => ({ type }),
  recipients: (handle) => ({ to: [handle, 'eve@x.example'] }),
  'conversation reference': (thread_ref) => ({ metadata: { thread_ref } }),
  'external conversation': (external_conversation_id) => ({ metadata: { external_conversation_id } }),
};

const GUARDED = ROUTES.flatMap(([, { guard, ...route }]) => (guard ? [{ ...route, guard }] : []));

/** Routes with the same pool share their buckets. */
function poolOf({ method, path, guard }: (typeof GUARDED)[number]): string {
  return guard.by.length === 0 ? guard.guard : (guard.pool ?? `${method} ${path}`);
}

/** A request to a guarded route, of ids that nobody has. @param odd the part of its key that has another value */
function requestTo({ method, path, guard }: (typeof GUARDED)[number], odd = ''): Sent {
  const value = (part: string) => (part === odd ? 'odd@x.example' : 'usual@x.example');
  const parts = guard.by.filter((part): part is GroupPart => part in BODY_OF);
  const body = Object.assign({}, ...parts.map((part) => BODY_OF[part](value(part))));
  return [method, path.replace(/:\w+/g, value), method === 'GET' ? undefined : body];
}

const get = (path: string): Sent => ['GET', path];
const post = (path: string, body: object = {}): Sent => ['POST', path, body];
const patch = (path: string): Sent => ['PATCH', path, {}];

/** @param furtherTiers of guards that the test adds */
async function start(options: object = {}, furtherTiers: string[] = []) {
  const service = await startFrozen(options, furtherTiers);
  const company = await service.company({ plan: 'enterprise' });
  const token = at(company.api_tokens, 0).token;
  const send = ([method, path, body]: Sent, by = token) => service.call(method, path, by, body);
  /** Status and tier of one request after the other, such as `429 search`. */
  const answers = async (requests: Sent[], by = token) => {
    const all: string[] = [];
    for (const request of requests) {
      const { status, headers } = await send(request, by);
      all.push(`${status} ${headers.get(HEADER.tier)}`);
    }
    return all;
  };
  return { service, company, token, send, answers };
}

const times = <T>(count: number, item: T): T[] => Array(count).fill(item);

describe('Limits: additional rate guards', () => {
  test('x-service-tier names the guard on answers of guarded routes, and of no other', async () => {
    const { answers } = await start();
    for (const [, { method, path, guard }] of ROUTES) {
      const sent: Sent = [method, path.replace(/:\w+/g, 'x'), method === 'GET' ? undefined : {}];
      const tier = guard === undefined ? null : GUARDS[guard.guard].tier;
      expect([sent, ...(await answers([sent]))]).toEqual([sent, expect.stringMatching(`^\\d+ ${tier}$`)]);
    }
  });

  test('Every guard refuses once its bucket is full, while the rate limit has room', async () => {
    for (const route of GUARDED) {
      const { service, send, answers } = await start();
      const { guard } = route;
      const { tier, windowMs } = GUARDS[guard.guard];
      const limit = guardLimit(GUARDS[guard.guard], PLAN_LIMITS.enterprise);
      const together = GUARDED.filter((other) => poolOf(other) === poolOf(route));
      const requests = Array.from({ length: limit }, (_, turn) =>
        requestTo(at(together, turn % together.length)),
      );
      const passed = expect.not.stringContaining(`429 ${tier}`);
      expect(await answers(requests)).toEqual(times(limit, passed));

      const { status, headers, body } = await send(requestTo(route));
      expect([route.path, status, headers.get(HEADER.tier)]).toEqual([route.path, 429, tier]);
      expect(headers.get(HEADER.retryAfter)).toBe(String(windowMs / 1000));
      expect(headers.get(HEADER.remaining)).toBe(String(PLAN_LIMITS.enterprise - limit));
      expect(JSON.stringify(body)).toContain(` ${windowMs} milliseconds`);
      const apart = GUARDED.filter((other) => !together.includes(other)).map((other) => requestTo(other));
      const others = [...guard.by.map((part) => requestTo(route, part)), ...apart];
      expect(await answers(others), route.path).toEqual(times(others.length, passed));

      await service.advance(windowMs - 1);
      expect((await send(requestTo(route))).headers.get(HEADER.retryAfter)).toBe('1');
      await service.advance(1);
      expect(await answers([requestTo(route)])).toEqual([passed]);
    }
  });

  test('Guards and the rate limit count apart: what one refuses counts for none of them', async () => {
    const { service, company, token, send, answers } = await start();
    const report = post('/analytics/reports');
    expect(await answers([report, report, report])).toEqual(['201 1', '429 1', '429 1']);
    expect((await send(get('/me'))).headers.get(HEADER.remaining)).toBe('198');
    await service.advance(3_000);
    await service.statuses(298, '/me', token);
    expect(await answers([report])).toEqual(['429 null']);
    const { access_token } = await service.install(company);
    expect(await answers([report], access_token)).toEqual(['201 1']);
  });

  test('Search: 40% of the caller’s rate limit a minute, whatever is looked for', async () => {
    const { service, company, token, answers } = await start();
    const { access_token } = await service.install(company);
    const searches = Array.from({ length: 81 }, (_, word) => get(`/conversations/search/word${word}`));
    expect(await answers(searches, token)).toEqual([...times(80, '200 search'), '429 search']);
    const asPartner = await answers(searches.slice(0, 49), access_token);
    expect(asPartner).toEqual([...times(48, '200 search'), '429 search']);
  });
});

describe('Limits: additional rate guards (our choice)', () => {
  test('The two cells that run together can be configured to another reading', async () => {
    const { answers, company } = await start({
      guards: {
        analytics: { tier: 'analytics', limit: 11, windowMs: 3_000 },
        resource: { tier: 'resource', limit: 25, windowMs: 1_000 },
      },
    });
    const report = post('/analytics/reports');
    expect(await answers(times(12, report))).toEqual([...times(11, '201 analytics'), '429 analytics']);
    const teammate = patch(`/teammates/${at(company.teammates, 0).id}`);
    expect(await answers(times(26, teammate))).toEqual([...times(25, '200 resource'), '429 resource']);
  });

  test('A guard is the company’s: its own tokens and a partner’s fill one bucket', async () => {
    const { service, company, token, answers } = await start();
    const sent = patch(`/teammates/${at(company.teammates, 0).id}`);
    const { access_token } = await service.install(company);
    expect(await answers(times(3, sent), token)).toEqual(times(3, '200 2'));
    expect(await answers(times(3, sent), access_token)).toEqual(['200 2', '200 2', '429 2']);
    expect(await answers([sent], token)).toEqual(['429 2']);
  });

  test('A request that is then refused for its body or its id counts for its guard, too', async () => {
    const { service, token, answers } = await start();
    const { body } = await service.call<{ _results: { id: string }[] }>('GET', '/conversations', token);
    const path = `/conversations/${at(body._results, 0).id}/messages`;
    const sent = [post(path), post(path, ['x']), ...times(4, post(path, { text: 'x' }))];
    expect(await answers(sent)).toEqual(['422 2', '400 2', ...times(3, '201 2'), '429 2']);
    const unknown = post('/conversations/none/messages', { text: 'x' });
    expect(await answers(times(6, unknown))).toEqual([...times(5, '404 2'), '429 2']);
  });

  test('A message has one bucket of the seen guard, by its id and its message_uid', async () => {
    const { service, token, answers } = await start();
    const { body: list } = await service.call<{ _results: { id: string }[] }>('GET', '/conversations', token);
    const path = `/conversations/${at(list._results, 0).id}/messages`;
    const { body } = await service.call<Record<string, string>>('POST', path, token, { body: 'Hello' });
    const seen = [body.id, body.message_uid].map((name) => post(`/messages/${name}/seen`));
    const all = await answers(times(6, seen).flat());
    expect(all).toEqual([...times(10, '200 message-seen'), ...times(2, '429 message-seen')]);
  });

  test('Without an external conversation a guard counts by who writes, or is written to', async () => {
    const { answers } = await start();
    const from = (handle: string) => post('/channels/c/inbound_messages', { sender: { handle } });
    const to = (...handles: string[]) => post('/channels/c/outbound_message', { to: handles });
    expect(await answers([...times(5, from('ann')), from('ANN')])).toEqual([...times(5, '422 2'), '429 2']);
    expect(await answers([...times(5, to('a', 'b')), to('b', 'a')])).toEqual([...times(5, '422 2'), '429 2']);
    expect(await answers([from('bob'), to('b')])).toEqual(['422 2', '422 2']);
  });
});

describe('Further guards', () => {
  const LISTS = { tier: 'lists', requests: 5, per_ms: 100, paths: ['/contacts', '/conversations'] };

  async function startWith(...guards: { tier: string; [member: string]: unknown }[]) {
    const parts = await start({}, ['lists', ...guards.map(({ tier }) => tier)]);
    for (const guard of guards) await parts.service.done('guards', guard);
    return parts;
  }

  test('One counts a company’s requests to its routes together, whoever asks', async () => {
    const { service, company, answers } = await startWith(LISTS);
    const [contacts, conversations] = [get('/contacts'), get('/conversations')];
    const { access_token } = await service.install(company);
    expect(await answers([contacts, conversations, contacts])).toEqual(times(3, '200 lists'));
    const asPartner = await answers([contacts, conversations, contacts, get('/tags')], access_token);
    expect(asPartner).toEqual(['200 lists', '200 lists', '429 lists', '200 null']);
    const other = at((await service.company()).api_tokens, 0).token;
    expect(await answers([contacts], other)).toEqual(['200 lists']);
    await service.advance(99);
    expect(await answers([contacts])).toEqual(['429 lists']);
    await service.advance(1);
    expect(await answers([contacts])).toEqual(['200 lists']);
  });

  test('One takes placeholders of a route, and every route when it names none', async () => {
    const { company, answers } = await startWith(
      { tier: 'tag', requests: 1, per_ms: 1_000, paths: ['/tags/:tag_id/children'] },
      { tier: 'talk', requests: 1, per_ms: 1_000, paths: ['/conversations/:conversation_id/messages'] },
      { tier: 'all', requests: 4, per_ms: 1_000 },
    );
    const children = company.tags.slice(0, 2).map((tag) => get(`/tags/${tag}/children`));
    expect(await answers(children)).toEqual(['200 tag', '429 tag']);
    const search = get('/conversations/search/messages');
    expect(await answers([search, search])).toEqual(['200 search', '200 search']);
    expect(await answers(times(2, get('/me')))).toEqual(['200 all', '429 all']);
  });

  test('A route’s own guard holds beside a further one', async () => {
    const { company, answers } = await startWith({ tier: 'resource', requests: 6, per_ms: 2_000 });
    const [one, other] = company.teammates.map(({ id }) => patch(`/teammates/${id}`));
    if (one === undefined || other === undefined) throw new Error('two teammates are needed');
    expect(await answers([...times(6, one), other, other])).toEqual([
      ...times(5, '200 2'),
      '429 2',
      '200 2',
      '429 resource',
    ]);
  });

  test('One of the same tier takes its place; they go at once, and with a reset', async () => {
    const { service, answers } = await startWith({ ...LISTS, requests: 1 });
    const twice = times(2, get('/contacts'));
    expect(await answers(twice)).toEqual(['200 lists', '429 lists']);
    await service.done('guards', { ...LISTS, requests: 2 });
    expect(await answers([...twice, ...twice])).toEqual([...times(2, '200 lists'), ...times(2, '429 lists')]);
    const { id } = await service.done<{ id: string }>('snapshot', {});
    expect(await service.done('guards', undefined, 'DELETE')).toEqual({ deleted: 1 });
    expect(await answers(twice)).toEqual(times(2, '200 null'));
    await service.done('restore', { id });
    expect(await answers(twice)).toEqual(times(2, '429 lists'));
    await service.done('reset', {});
    const { token } = at((await service.company()).api_tokens, 0);
    expect(await answers(times(3, get('/contacts')), token)).toEqual(times(3, '200 null'));
  });
});
