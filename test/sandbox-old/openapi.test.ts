import { Validator } from '@seriousme/openapi-schema-validator';
import { expect, test } from 'vitest';
import { ROUTES } from '../../src/contract/api/api.ts';
import { GUARDS } from '../../src/contract/guards.ts';
import { descriptionOf, type Exchange } from '../sandbox/support/description.ts';
import { at, startFrozen, startSandbox } from '../sandbox/support/test-sandbox.ts';

interface Operation {
  operationId: string;
  tags: string[];
  'x-source': string;
  'x-guard'?: { name: string; tier: string };
  parameters: { name?: string; in?: string; $ref?: string }[];
  requestBody?: object;
  responses: Record<string, object>;
}

interface Document {
  openapi: string;
  servers: { url: string }[];
  paths: Record<string, Record<string, Operation>>;
  components: { securitySchemes: Record<string, { flows?: Record<string, Record<string, unknown>> }> };
}

async function read() {
  const service = await startFrozen();
  const response = await fetch(`${service.sandbox.origin}/_sandbox/openapi.json`);
  return { service, response, document: (await response.json()) as Document };
}

test('the description is served as JSON, and is valid OpenAPI 3.1', async () => {
  const { response, document } = await read();
  expect([response.status, response.headers.get('content-type')]).toEqual([
    200,
    'application/json; charset=utf-8',
  ]);
  expect(document.openapi).toMatch(/^3\.1\./);
  const { valid, errors } = await new Validator().validate({ ...document });
  expect(errors).toBeUndefined();
  expect(valid).toBe(true);
});

test('every route of the contract is described, with its placeholders, its guard and where it comes from', async () => {
  const { document } = await read();
  const described = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, { operationId }]) => operationId !== undefined)
      .map(([method, operation]) => ({ path, method, operation })),
  );
  expect(described.map(({ operation }) => operation.operationId).toSorted()).toEqual(
    [...ROUTES.map(([name]) => name), 'authorize', 'consent', 'token'].toSorted(),
  );
  for (const [name, route] of ROUTES) {
    const { path, method, operation } = at(
      described.filter((one) => one.operation.operationId === name),
      0,
    );
    expect([path, method]).toEqual([route.path.replace(/:(\w+)/g, '{$1}'), route.method.toLowerCase()]);
    const names = operation.parameters.filter((one) => one.in === 'path').map((one) => `:${one.name}`);
    expect(names).toEqual(route.path.match(/:\w+/g) ?? []);
    expect(operation['x-source']).toBe(route.source);
    expect(operation['x-guard']?.name).toBe(route.guard?.guard);
    expect(operation['x-guard']?.tier).toBe(route.guard && GUARDS[route.guard.guard].tier);
    expect(operation.requestBody === undefined).toBe(route.body === undefined);
    expect(Object.keys(operation.responses)).toContain(String(route.status ?? 200));
    expect(Object.keys(operation.responses)).toEqual(expect.arrayContaining(['401', '403', '429']));
    const references = operation.parameters.map(({ $ref }) => $ref?.split('/').at(-1));
    expect(references.includes('limit') && references.includes('page_token')).toBe(route.list === true);
    expect(references.includes('Prefer')).toBe(route.async === true);
  }
});

test('it leads to this sandbox, as its reader reached it: the API, and the addresses of OAuth', async () => {
  const { sandbox } = await startFrozen();
  for (const origin of [sandbox.origin, sandbox.origin.replace('127.0.0.1', 'localhost')]) {
    const document = (await (await fetch(`${origin}/_sandbox/openapi.json`)).json()) as Document;
    expect(document.servers).toEqual([{ url: `${origin}/api` }]);
    expect(document.paths['/oauth/token']).toMatchObject({ servers: [{ url: `${origin}/auth` }] });
    expect(document.components.securitySchemes.oauth?.flows?.authorizationCode).toMatchObject({
      authorizationUrl: `${origin}/auth/oauth/authorize`,
      tokenUrl: `${origin}/auth/oauth/token`,
    });
  }
});

test('the guards are described as this sandbox enforces them', async () => {
  const { sandbox } = await startSandbox({ guards: { resource: { tier: 'x', limit: 7, windowMs: 900 } } });
  const document = (await (await fetch(`${sandbox.origin}/_sandbox/openapi.json`)).json()) as Document;
  expect(document.paths['/accounts']?.post?.['x-guard']).toEqual({
    name: 'resource',
    tier: 'x',
    limit: 7,
    window_ms: 900,
    grouped_by: ['account'],
  });
});

/** A good answer to spoil, of `GET /tags/:tag_id` when no other path is named. */
async function goodExchange(path?: string): Promise<Exchange> {
  const service = await startFrozen();
  const company = await service.company();
  const url = `${service.sandbox.apiUrl}${path ?? `/tags/${at(company.tags, 0)}`}`;
  const response = await fetch(url, {
    headers: { authorization: `Bearer ${at(company.api_tokens, 0).token}` },
  });
  const { status, headers } = response;
  return { method: 'GET', url, status, headers, body: await response.text() };
}

function without(headers: Headers, name: string): Headers {
  const left = new Headers(headers);
  left.delete(name);
  return left;
}

function withHeader(headers: Headers, name: string, value: string): Headers {
  const more = new Headers(headers);
  more.set(name, value);
  return more;
}

const SPOILS: [string, (exchange: Exchange) => Partial<Exchange>, RegExp][] = [
  ['a member is missing', ({ body }) => ({ body: body.replace('"created_at"', '"made_at"') }), /created_at/],
  ['a member has another type', ({ body }) => ({ body: body.replace(/"name":"[^"]*"/, '"name":7') }), /name/],
  ['the body is no JSON', () => ({ body: '{"id":' }), /no application.json/],
  [
    'it says that it is text',
    ({ headers }) => ({ headers: withHeader(headers, 'content-type', 'text/plain') }),
    /no application.json/,
  ],
  [
    'a rate header is missing',
    ({ headers }) => ({ headers: without(headers, 'x-ratelimit-reset') }),
    /reset is missing/,
  ],
  [
    'a rate header is no number',
    ({ headers }) => ({ headers: withHeader(headers, 'x-ratelimit-limit', 'many') }),
    /limit/,
  ],
  [
    'a route without a guard names a tier',
    ({ headers }) => ({ headers: withHeader(headers, 'x-service-tier', '2') }),
    /tier/,
  ],
  ['the status is none of its own', () => ({ status: 201 }), /answers 201/],
  ['an error has no _error', () => ({ status: 404 }), /_error/],
  ['the path is nobody’s', ({ url }) => ({ url: url.replace('/tags/', '/labels/') }), /nothing is described/],
  ['a 429 does not say how long to wait', () => ({ status: 429 }), /retry-after is missing/],
];

test.each(SPOILS)('an answer is refused in which %s', async (_, spoil, message) => {
  const good = await goodExchange();
  const description = descriptionOf();
  expect(description.problems(good)).toEqual([]);
  expect(description.problems({ ...good, ...spoil(good) }).join('; ')).toMatch(message);
});

test.each([
  ['next', '"next"', '"then"', /_pagination.*next/],
  ['self', '"self"', '"here"', /_links.*self/],
  ['_results', '"_results"', '"items"', /_results/],
])('a page is refused without %s', async (_, member, other, message) => {
  const good = await goodExchange('/contacts?limit=1');
  const description = descriptionOf();
  expect(description.problems(good)).toEqual([]);
  const body = good.body.replace(member, other);
  expect(description.problems({ ...good, body }).join('; ')).toMatch(message);
});

test('a body is refused that the API should not have taken', async () => {
  const { url } = await goodExchange();
  const description = descriptionOf();
  expect(description.bodyProblems('PATCH', url, '{"name":"x"}')).toEqual([]);
  expect(description.bodyProblems('PATCH', url, '{"name":7}').join('; ')).toMatch(/the body.name/);
});
