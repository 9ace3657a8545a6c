import { readFileSync } from 'node:fs';
import { Validator } from '@seriousme/openapi-schema-validator';
import { describe, expect, test } from 'vitest';
import { ROUTES } from '../../src/contract/api/api.ts';
import { GUARDS } from '../../src/contract/guards.ts';
import { descriptionOf, type Exchange } from './support/checked-sandbox.ts';
import { startCompany, startFrozen } from './support/test-sandbox.ts';

interface Operation {
  parameters: { name?: string; $ref?: string }[];
}

async function read(origin: string, name = 'openapi') {
  const response = await fetch(`${origin}/_sandbox/${name}.json`);
  return (await response.json()) as { paths: Record<string, Record<string, Operation>> };
}

describe('the OpenAPI description', () => {
  test('It is valid OpenAPI 3.1, and leads to this sandbox as its reader reached it', async () => {
    const { sandbox } = await startFrozen();
    for (const origin of [sandbox.origin, sandbox.origin.replace('127.0.0.1', 'localhost')]) {
      const document = await read(origin);
      expect(await new Validator().validate({ ...document })).toMatchObject({ valid: true });
      const oauth = `${origin}/auth/oauth`;
      const authorizationCode = { authorizationUrl: `${oauth}/authorize`, tokenUrl: `${oauth}/token` };
      expect(document).toMatchObject({
        openapi: expect.stringMatching(/^3\.1\./),
        servers: [{ url: `${origin}/api` }],
        paths: { '/oauth/token': { servers: [{ url: `${origin}/auth` }] } },
        components: { securitySchemes: { oauth: { flows: { authorizationCode } } } },
      });
    }
  });

  test('It has every route, with its parameters and the guard as it is enforced', async () => {
    const guards = { ...GUARDS, resource: { tier: 'x', limit: 7, windowMs: 900 } };
    const { sandbox } = await startFrozen({ guards });
    const { paths } = await read(sandbox.origin);
    for (const [operationId, { method, path, source, guard, list, async }] of ROUTES) {
      const operation = paths[path.replace(/:(\w+)/g, '{$1}')]?.[method.toLowerCase()];
      expect(operation).toMatchObject({ operationId, 'x-source': source });
      const described = guard && { name: guard.guard, tier: guards[guard.guard].tier, grouped_by: guard.by };
      if (guard) expect(operation).toMatchObject({ 'x-guard': described });
      const parameters = operation?.parameters.map((one) => one.$ref?.split('/').at(-1) ?? `:${one.name}`);
      const expected = [...(path.match(/:\w+/g) ?? []), ...(list ? ['limit', 'page_token'] : [])];
      expect(parameters).toEqual([...expected, ...(async ? ['Prefer'] : [])]);
    }
    expect(paths['/accounts']?.post).toMatchObject({ 'x-guard': { limit: 7, window_ms: 900 } });
  });
});

describe('the OpenAPI description of the control interface', () => {
  test('It is valid OpenAPI 3.1, leads to this sandbox, and has the documented calls', async () => {
    const { sandbox } = await startFrozen({ publicUrl: 'https://sandbox.example' });
    const document = await read(sandbox.origin, 'control');
    expect(await new Validator().validate({ ...document })).toMatchObject({ valid: true });
    expect(document).toMatchObject({ servers: [{ url: 'https://sandbox.example/_sandbox' }] });
    const [, section = ''] = readFileSync('docs/sandbox.md', 'utf8').split(/^## (?:Control over|Faults)/m);
    const documented = [...section.matchAll(/`((?:GET|POST|DELETE) \/[\w/:.]+)/g)].map(([, call]) => call);
    const described = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path.replace(/\{(\w+)\}/g, ':$1')}`),
    );
    expect(described.toSorted()).toEqual(documented.toSorted());
  });
});

// Every answer of every test is held against the description, so the check itself has to be able to fail.
describe('the check against the description', () => {
  const without =
    (word: string) =>
    ({ headers, body }: Exchange) => {
      const left = new Headers(headers);
      left.delete(word);
      return { headers: left, body: body.replace(word, 'x') };
    };
  const tier = { headers: new Headers({ 'x-service-tier': '2' }) };

  test.each<[string, (exchange: Exchange) => Partial<Exchange>, RegExp]>([
    ['a missing member', without('created_at'), /created_at/],
    ['a page without next', without('next'), /_pagination.*next/],
    ['a body that is no JSON', () => ({ body: '{"id":' }), /the body/],
    ['a missing rate header', without('x-ratelimit-reset'), /reset is missing/],
    ['a tier on a route without a guard', () => tier, /tier is not described/],
    ['a status of its own', () => ({ status: 201 }), /described.*answers 201/],
    ['an error without _error', () => ({ status: 400 }), /_error/],
    ['a 429 that does not say how long', () => ({ status: 429 }), /retry-after is missing/],
    ['a path that is nobody’s', ({ url }) => ({ url: url.replace('tags', 'x') }), /nothing is described/],
  ])('It refuses %s', async (_, spoil, message) => {
    const { service, token } = await startCompany();
    const url = `${service.sandbox.apiUrl}/tags?limit=1`;
    const response = await service.api(url, token);
    const { status, headers } = response;
    const good = { method: 'GET', url, status, headers, body: await response.text() };
    const { problems } = descriptionOf();
    expect(problems(good)).toEqual([]);
    expect(problems({ ...good, ...spoil(good) }).join()).toMatch(message);
  });
});
