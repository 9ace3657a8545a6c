import { Validator } from '@seriousme/openapi-schema-validator';
import { describe, expect, test } from 'vitest';
import { ROUTES } from '../../src/contract/api/api.ts';
import { GUARDS } from '../../src/contract/guards.ts';
import { descriptionOf, type Exchange } from './support/description.ts';
import { at, startFrozen } from './support/test-sandbox.ts';

interface Operation {
  operationId: string;
  'x-source': string;
  'x-guard'?: { name: string; tier: string };
  parameters: { name?: string; in?: string; $ref?: string }[];
}

interface Document {
  openapi: string;
  servers: { url: string }[];
  paths: Record<string, Record<string, Operation>>;
  components: { securitySchemes: Record<string, { flows?: Record<string, unknown> }> };
}

async function read(origin: string): Promise<Document> {
  return (await fetch(`${origin}/_sandbox/openapi.json`)).json() as Promise<Document>;
}

describe('the OpenAPI description', () => {
  test('It is valid OpenAPI 3.1, and leads to this sandbox as its reader reached it', async () => {
    const { sandbox } = await startFrozen();
    for (const origin of [sandbox.origin, sandbox.origin.replace('127.0.0.1', 'localhost')]) {
      const document = await read(origin);
      expect(document.openapi).toMatch(/^3\.1\./);
      expect(await new Validator().validate({ ...document })).toMatchObject({ valid: true });
      expect(document.servers).toEqual([{ url: `${origin}/api` }]);
      expect(document.paths['/oauth/token']).toMatchObject({ servers: [{ url: `${origin}/auth` }] });
      expect(document.components.securitySchemes.oauth?.flows?.authorizationCode).toMatchObject({
        authorizationUrl: `${origin}/auth/oauth/authorize`,
        tokenUrl: `${origin}/auth/oauth/token`,
      });
    }
  });

  test('It has every route of the contract, with its placeholders and guard', async () => {
    const { sandbox } = await startFrozen({ guards: { resource: { tier: 'x', limit: 7, windowMs: 900 } } });
    const { paths } = await read(sandbox.origin);
    const methods = Object.values(paths).flatMap((path) => Object.values(path));
    const names = methods.map(({ operationId }) => operationId).filter((name) => name !== undefined);
    expect(names.toSorted()).toEqual(
      [...ROUTES.map(([name]) => name), 'authorize', 'consent', 'token'].toSorted(),
    );
    for (const [name, { method, path, source, guard, list, async }] of ROUTES) {
      const operation = paths[path.replace(/:(\w+)/g, '{$1}')]?.[method.toLowerCase()];
      const tier = guard && (guard.guard === 'resource' ? 'x' : GUARDS[guard.guard].tier);
      expect(operation).toMatchObject({ operationId: name, 'x-source': source });
      expect([operation?.['x-guard']?.name, operation?.['x-guard']?.tier]).toEqual([guard?.guard, tier]);
      const parameters = operation?.parameters.map((one) => one.$ref?.split('/').at(-1) ?? `:${one.name}`);
      const expected = [...(path.match(/:\w+/g) ?? []), ...(list ? ['limit', 'page_token'] : [])];
      expect(parameters).toEqual([...expected, ...(async ? ['Prefer'] : [])]);
    }
    expect(paths['/accounts']?.post?.['x-guard']).toMatchObject({
      limit: 7,
      window_ms: 900,
      grouped_by: ['account'],
    });
  });
});

// Every answer of every test is held against the description, so the check itself has to be able to fail.
describe('the check against the description', () => {
  const header = (name: string, value?: string) => (exchange: Exchange) => {
    const headers = new Headers(exchange.headers);
    if (value === undefined) headers.delete(name);
    else headers.set(name, value);
    return { headers };
  };
  const text =
    (from: string | RegExp, to: string) =>
    ({ body }: Exchange) => ({ body: body.replace(from, to) });

  test.each<[string, (exchange: Exchange) => Partial<Exchange>, RegExp]>([
    ['a missing member', text('"created_at"', '"made_at"'), /created_at/],
    ['a page without next', text('"next"', '"then"'), /_pagination.*next/],
    ['a body that is no JSON', () => ({ body: '{"id":' }), /no application.json/],
    ['a missing rate header', header('x-ratelimit-reset'), /reset is missing/],
    ['a tier on a route without a guard', header('x-service-tier', '2'), /tier/],
    ['a status of its own', () => ({ status: 201 }), /answers 201/],
    ['an error without _error', () => ({ status: 400 }), /_error/],
    ['a 429 that does not say how long', () => ({ status: 429 }), /retry-after is missing/],
    [
      'a path that is nobody’s',
      ({ url }) => ({ url: url.replace('/tags', '/labels') }),
      /nothing is described/,
    ],
  ])('It refuses %s', async (_, spoil, message) => {
    const service = await startFrozen();
    const { token } = at((await service.company()).api_tokens, 0);
    const url = `${service.sandbox.apiUrl}/tags?limit=1`;
    const response = await service.api(url, token);
    const { status, headers } = response;
    const good = { method: 'GET', url, status, headers, body: await response.text() };
    expect(descriptionOf().problems(good)).toEqual([]);
    expect(
      descriptionOf()
        .problems({ ...good, ...spoil(good) })
        .join('; '),
    ).toMatch(message);
  });

  test('It refuses a body that the API should not have taken', () => {
    const [url, problems] = ['http://127.0.0.1/api/tags/tag_1', descriptionOf()];
    expect(problems.bodyProblems('PATCH', url, '{"name":"x"}')).toEqual([]);
    expect(problems.bodyProblems('PATCH', url, '{"name":7}').join()).toMatch(/the body.name/);
  });
});
