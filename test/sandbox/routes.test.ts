import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { API, type Operation, ROUTES } from '../../src/contract/api/api.ts';
import { filled, goodBody, idsOf, type Request, startOpen } from './support/routes.ts';
import { START_MS } from './support/test-sandbox.ts';

/** Bodies that are wrong though each of their members might be right. */
const WRONG: Partial<Record<Operation, readonly object[]>> = {
  updateTag: [{ parent_tag_id: 'tag_none' }],
  updateTeammate: [{ first_name: '', last_name: ' ' }],
  createArticle: [{ author_id: 'tea_none' }],
  updateArticleContent: [{ author_id: 'tea_none' }],
  createReport: [{ start: 2, end: 2 }, { start: START_MS / 1000 + 60 }],
  createExport: [{ start: 2, end: 2 }, { start: START_MS / 1000 + 60 }],
};

const TOO_DEEP = `{"deep":${'['.repeat(500)}${']'.repeat(500)}}`;
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];
const ODD = [-1, ' ', 'no such', null, [7], {}];

/** Bodies with one member that the contract does not allow, and without any if one is needed. */
function wrongBodies(operation: Operation, schema: z.ZodType | undefined, good: object | undefined) {
  if (!(schema instanceof z.ZodObject)) return [];
  const odd = Object.keys(schema.shape).flatMap((member) =>
    ODD.map((value) => ({ ...good, [member]: value })),
  );
  return [...[{}, ...odd].filter((body) => !schema.safeParse(body).success), ...(WRONG[operation] ?? [])];
}

/** A company, and each route of the contract with its URL there, a body that it takes, and how it is read. */
async function start() {
  const parts = await startOpen({ contacts: 60, conversations: 20 });
  const ids = await idsOf(parts.service, parts.company);
  const routes = ROUTES.map(([operation, route]) => {
    const isRead = ROUTES.some(([, { method, path }]) => method === 'GET' && path === route.path);
    return { operation, ...route, url: filled(route.path, ids), good: goodBody(route, ids), isRead };
  });
  return { ...parts, ids, routes };
}

describe('What the service does', () => {
  test('It is an HTTP API whose answers are JSON, errors included', async () => {
    const { token, send } = await start();
    for (const [operation, { method, path }] of ROUTES) {
      for (const by of [token, 'nobody']) {
        const { status, headers, body } = await send(method, filled(path, {}), undefined, by);
        expect(headers.get('content-type'), operation).toBe('application/json; charset=utf-8');
        if (by === 'nobody' || /:\w+_id/.test(path)) expect(body).toMatchObject({ _error: { status } });
      }
    }
  });
});

describe('Endpoints: routes', () => {
  test('Every route answers as it is described, with a status of its own', async () => {
    const { service, token, routes } = await start();
    for (const { operation, method, url, good, status = 200, mediaType = 'application/json' } of routes) {
      const response = await service.api(url, token, { method, body: JSON.stringify(good) ?? null });
      expect([operation, response.status]).toEqual([operation, status]);
      expect(response.headers.get('content-type')).toBe(`${mediaType}; charset=utf-8`);
    }
  });
});

describe('Endpoints: pagination', () => {
  test('Every list comes in pages of the limit, which have all of it', async () => {
    const { list, pages, routes } = await start();
    for (const { operation, url } of routes.filter((route) => route.list)) {
      const walked = await pages(`${url}?limit=1`);
      for (const { _results } of walked) expect(_results.length).toBeLessThanOrEqual(1);
      const records = walked.flatMap(({ _results }) => _results);
      expect(records, operation).not.toEqual([]);
      expect(records).toEqual(await list(`${url}?limit=100`));
    }
  });
});

describe('Resources (our choice)', () => {
  test('A record keeps what is sent, own members too, but for what the service sets', async () => {
    const { service, send, read, list, routes } = await start();
    const now = START_MS / 1000 + 12;
    service.advance(7_000);
    const records = routes.filter(({ operation }) => /^(create|update)(?!Message|Conv)/.test(operation));
    for (const { operation, method, url, body: schema, answer, good, isRead } of records) {
      const unnamed = Object.keys((answer as z.ZodObject).shape).filter((one) => !schema?.shape[one]);
      const forged = Object.fromEntries(unnamed.map((member) => [member, 'mine']));
      const sent = { ...good, of_ours: { deep: [1, null] } };
      const before = method === 'PATCH' ? await read(url) : {};
      const { body } = await send(method, url, { ...sent, ...forged });
      const times = method === 'PATCH' ? { updated_at: now } : { created_at: now };
      expect(body, operation).toMatchObject({ ...before, ...sent, ...times });
      expect(JSON.stringify(body)).not.toContain('"mine"');
      expect(await read(body._links.content ?? body._links.self)).toEqual(body);
      if (method === 'POST' && isRead) expect(await list(url)).toContainEqual(body);
    }
  });
});

describe('Errors (our choice)', () => {
  test('An id that is unknown, or another company’s, is 404', async () => {
    const { service, expectStatus, routes, ids } = await start();
    const ofOther = await idsOf(service, service.company({ plan: 'enterprise' }));
    const foreign: Record<string, string> = { ...ofOther, locale: 'fr', application_uid: 'constructor' };
    const requests = routes.flatMap(({ method, path, good }) =>
      (path.match(/(?<=:)(?!query|\w+_ext_id)\w+/g) ?? []).flatMap((name) =>
        ['none', foreign[name] ?? ''].map(
          (id): Request => [method, filled(path, { ...ids, [name]: id }), good],
        ),
      ),
    );
    await expectStatus(404, [...requests, ['GET', '/nothing']]);
  });

  test('A method that a path does not have is 405, and allow lists those that it has', async () => {
    const { send, routes } = await start();
    for (const [url, served] of Map.groupBy(routes, (route) => route.url)) {
      const methods = served.map(({ method }): string => method);
      for (const method of METHODS.filter((one) => !methods.includes(one))) {
        const { status, headers } = await send(method, url);
        expect([method, url, status]).toEqual([method, url, 405]);
        expect(headers.get('allow')?.split(', ')).toEqual(expect.arrayContaining(methods));
      }
    }
  });

  test('A body that is no JSON object or too deep is 400, a wrong 422; nothing changes', async () => {
    const { service, token, read, counts, expectStatus, routes } = await start();
    const before = counts();
    for (const { operation, method, url, body: schema, good, isRead } of routes) {
      if (method === 'GET') continue;
      const shown = isRead && (await read(url));
      for (const body of ['{', '[]', 'null', '"x"', TOO_DEEP]) {
        const { status } = await service.api(url, token, { method, body });
        expect([operation, body, status]).toEqual([operation, body, 400]);
      }
      for (const wrong of wrongBodies(operation, schema, good)) {
        await expectStatus(422, [[method, url, wrong]]);
      }
      if (shown) expect(await read(url)).toEqual(shown);
    }
    expect(counts()).toEqual(before);
  });
});

describe('Versioning', () => {
  test('The contract has the fields that are listed as added, where they belong', () => {
    const fieldsOf = ({ answer }: { answer: z.ZodObject }) => Object.keys(answer.shape);
    expect(fieldsOf(API.getTag)).toEqual(expect.arrayContaining(['created_at', 'updated_at']));
    expect(fieldsOf(API.getAccount)).toContain('is_blocked');
    expect(fieldsOf(API.getMessage)).toEqual(expect.arrayContaining(['is_draft', 'error_type']));
    expect(fieldsOf(API.receiveInboundMessage)).toEqual(['status', 'message_uid']);
  });
});
