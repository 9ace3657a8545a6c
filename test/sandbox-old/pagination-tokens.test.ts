import { expect, test } from 'vitest';
import type { ErrorBody } from '../../src/contract/errors.ts';
import { company, idsOf, nextOf, type Page, page } from '../sandbox/support/paging.ts';
import {
  at,
  type Company,
  type State,
  startFrozen,
  type TestSandbox,
} from '../sandbox/support/test-sandbox.ts';
import { spawnEntry } from '../support/spawn-entry.ts';

async function get(service: TestSandbox, url: string, owner: Company, token = 0): Promise<Response> {
  return service.api(url, at(owner.api_tokens, token).token);
}

async function expectRefused(service: TestSandbox, url: string, owner: Company): Promise<void> {
  const response = await get(service, url, owner);
  expect({ url, status: response.status }).toEqual({ url, status: 400 });
  expect((await response.json()) as ErrorBody).toMatchObject({
    _error: { status: 400, title: 'Bad Request', message: expect.stringContaining('page_token') },
  });
}

/** The page token of the list's second page, and its address with another one. */
async function secondPage(service: TestSandbox, owner: Company, path = '/contacts?limit=10') {
  const next = new URL(nextOf(await page(service, path, owner)));
  const token = next.searchParams.get('page_token') ?? '';
  const withToken = (other: string) => {
    const url = new URL(next);
    url.searchParams.set('page_token', other);
    return url.href;
  };
  return { next, token, withToken };
}

test('a page token with any character changed is a 400', async () => {
  const service = await startFrozen();
  const owner = await company(service);
  const { token, withToken } = await secondPage(service, owner);
  expect(token.length).toBeGreaterThan(15);
  for (let place = 0; place < token.length; place++) {
    const other = token[place] === 'A' ? 'B' : 'A';
    await expectRefused(service, withToken(token.slice(0, place) + other + token.slice(place + 1)), owner);
  }
});

test('a page token that is cut off, or longer, is a 400', async () => {
  const service = await startFrozen();
  const owner = await company(service);
  const { token, withToken } = await secondPage(service, owner);
  for (let length = 0; length < token.length; length++) {
    await expectRefused(service, withToken(token.slice(0, length)), owner);
  }
  for (const other of [`${token}A`, `${token}AAAA`, `A${token}`, `${token}=`, ` ${token}`, token + token]) {
    await expectRefused(service, withToken(other), owner);
  }
});

test('a page token is good for every token of its company, and for none of another', async () => {
  const service = await startFrozen();
  const owner = await company(service);
  const other = await company(service);
  const { next } = await secondPage(service, owner);
  expect((await get(service, next.href, owner, 1)).status).toBe(200);
  const { access_token } = await service.install(owner);
  expect((await service.api(next.href, access_token)).status).toBe(200);
  await expectRefused(service, next.href, other);
  const foreign = await service.install(other);
  expect((await service.api(next.href, foreign.access_token)).status).toBe(400);
});

test('a page token of another list is a 400', async () => {
  const service = await startFrozen();
  const owner = await company(service);
  const { next } = await secondPage(service, owner);
  for (const list of ['/conversations', '/tags', `/tags/${at(owner.tags, 0)}/children`, '/responses']) {
    await expectRefused(service, next.href.replace('/contacts', list), owner);
  }
});

test('a page token with another limit than its own is a 400', async () => {
  const service = await startFrozen();
  const owner = await company(service);
  const { next } = await secondPage(service, owner);
  await expectRefused(service, next.href.replace('limit=10', 'limit=11'), owner);
  await expectRefused(service, next.href.replace('limit=10', 'limit=50'), owner);
  expect((await get(service, next.href.replace('limit=10&', ''), owner)).status).toBe(200);
});

test('a page token that is given twice is a 400', async () => {
  const service = await startFrozen();
  const owner = await company(service);
  const { next, token } = await secondPage(service, owner);
  await expectRefused(service, `${next.href}&page_token=${token}`, owner);
});

/** A sandbox in a process of its own. */
async function startProcess() {
  const entry = spawnEntry('src/sandbox/main.ts', { SANDBOX_PORT: '0' });
  const [, apiUrl = ''] = await entry.waitForOutput(/API +(http:\S+)/);
  const { companies } = (await (await fetch(new URL('/_sandbox/state', apiUrl))).json()) as State;
  const authorization = `Bearer ${at(at(companies, 1).api_tokens, 0).token}`;
  const read = async (path: string) => {
    const response = await fetch(`${apiUrl}${path}`, { headers: { authorization } });
    expect(response.status).toBe(200);
    return (await response.json()) as Page;
  };
  return { entry, read };
}

test('page tokens survive a restart', async () => {
  const before = await startProcess();
  const first = await before.read('/contacts?limit=10');
  const { search } = new URL(nextOf(first));
  const second = await before.read(`/contacts${search}`);
  await before.entry.stop();
  const after = await startProcess();
  const again = await after.read(`/contacts${search}`);
  expect(idsOf(again)).toEqual(idsOf(second));
  expect(idsOf(again)).not.toEqual(idsOf(first));
  await after.entry.stop();
});
