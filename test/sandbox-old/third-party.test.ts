import { OAuth2Client, OAuth2Fetch, type OAuth2Token } from '@badgateway/oauth2-client';
import { isAxiosError } from 'axios';
import got from 'got';
import { type Document, OpenAPIClientAxios } from 'openapi-client-axios';
import { expect, test } from 'vitest';
import { ROUTES } from '../../src/contract/api/api.ts';
import { ACCESS_TOKEN_LIFETIME_MS } from '../../src/contract/lifetimes.ts';
import {
  at,
  type Company,
  type Credentials,
  startFrozen,
  type TestSandbox,
} from '../sandbox/support/test-sandbox.ts';

// Clients that others wrote, and that know nothing of this project, work with the sandbox as they would with the service.

interface Page {
  _pagination: { next: string | null };
  _results: { id: string }[];
}

async function start() {
  const service = await startFrozen();
  const company = await service.company({ contacts: 230, conversations: 20 });
  return { service, company, token: at(company.api_tokens, 0).token };
}

/** A client made at run time from nothing but the sandbox's own description. */
async function describedClient(service: TestSandbox, token: string) {
  const response = await fetch(`${service.sandbox.origin}/_sandbox/openapi.json`);
  const definition = (await response.json()) as Document;
  const client = new OpenAPIClientAxios({
    definition,
    axiosConfigDefaults: { headers: { authorization: `Bearer ${token}` } },
  });
  return client.init();
}

function oauthClient(service: TestSandbox, { client_id, client_secret }: Credentials): OAuth2Client {
  return new OAuth2Client({
    server: `${service.sandbox.authUrl}/`,
    clientId: client_id,
    clientSecret: client_secret,
    authorizationEndpoint: `${service.sandbox.authUrl}/oauth/authorize`,
    tokenEndpoint: `${service.sandbox.authUrl}/oauth/token`,
    authenticationMethod: 'client_secret_basic_interop',
  });
}

/** What the browser of an administrator does: it says yes, and is sent back to this address. */
async function consent(authorizeUrl: string, company: Company): Promise<string> {
  const admin = at(
    company.teammates.filter(({ is_admin }) => is_admin),
    0,
  );
  const response = await fetch(authorizeUrl, {
    method: 'POST',
    body: new URLSearchParams({ teammate_id: admin.id, decision: 'approve' }),
    redirect: 'manual',
  });
  return response.headers.get('location') ?? '';
}

async function authorize(service: TestSandbox, company: Company): Promise<[OAuth2Client, OAuth2Token]> {
  const application = await service.application();
  const redirectUri = at(application.redirect_uris, 0);
  const client = oauthClient(service, application);
  const state = 'made up & unguessable';
  const url = await client.authorizationCode.getAuthorizeUri({ redirectUri, state });
  const back = await consent(url, company);
  return [client, await client.authorizationCode.getTokenFromCodeRedirect(back, { redirectUri, state })];
}

test('@badgateway/oauth2-client walks through the authorization, and its token opens the API', async () => {
  const { service, company } = await start();
  const [, token] = await authorize(service, company);
  expect(token.refreshToken).toMatch(/./);
  const me = await service.call('GET', '/me', token.accessToken);
  expect(me.body).toMatchObject({ id: company.id });
});

test('@badgateway/oauth2-client refreshes by itself once the API answers 401', async () => {
  const { service, company } = await start();
  const [client, first] = await authorize(service, company);
  const wrapper = new OAuth2Fetch({ client, getStoredToken: () => first, getNewToken: () => null });
  await service.advance(ACCESS_TOKEN_LIFETIME_MS);
  expect((await service.api('/me', first.accessToken)).status).toBe(401);
  const response = await wrapper.fetch(`${service.sandbox.apiUrl}/me`);
  expect(response.status).toBe(200);
  expect((await wrapper.getToken()).accessToken).not.toBe(first.accessToken);
  expect((await wrapper.getToken()).refreshToken).toBe(first.refreshToken);
});

test('openapi-client-axios has a method for each operation, out of the description alone', async () => {
  const { service, token } = await start();
  const client = await describedClient(service, token);
  for (const [operation] of ROUTES) expect(client[operation], operation).toBeTypeOf('function');
});

test('openapi-client-axios lists all contacts, page by page', async () => {
  const { service, token } = await start();
  const client = await describedClient(service, token);
  const ids: string[] = [];
  let page: Page = (await client.listContacts?.({ limit: 100 }))?.data;
  for (;;) {
    ids.push(...page._results.map(({ id }) => id));
    const { next } = page._pagination;
    if (next === null) break;
    page = (await client.get<Page>(next)).data;
  }
  expect(new Set(ids).size).toBe(230);
});

test('openapi-client-axios creates a child tag, and tags a conversation with it', async () => {
  const { service, company, token } = await start();
  const client = await describedClient(service, token);
  const parent = at(company.tags, 0);
  const child = await client.createChildTag?.({ tag_id: parent }, { name: 'From afar' });
  expect([child?.status, child?.data.parent_tag_id]).toEqual([201, parent]);
  const conversations = (await client.listConversations?.({ limit: 1 }))?.data as Page;
  const conversation_id = at(conversations._results, 0).id;
  const tagged = await client.addConversationTags?.({ conversation_id }, { tag_ids: [child?.data.id] });
  expect(tagged?.headers['x-service-tier']).toBe('2');
  const read = await client.getConversation?.({ conversation_id });
  expect(read?.data.tags).toContainEqual(expect.objectContaining({ id: child?.data.id, name: 'From afar' }));
});

test('openapi-client-axios is told what is wrong, and how long to wait', async () => {
  const { service, company, token } = await start();
  const client = await describedClient(service, token);
  const failure = async (call: Promise<unknown> | undefined) => {
    const error = await Promise.resolve(call).catch((reason: unknown) => reason);
    if (!isAxiosError(error) || error.response === undefined) throw new Error('it should have failed');
    return error.response;
  };
  const missing = await failure(client.getTag?.({ tag_id: 'tag_none' }));
  expect([missing.status, missing.data]).toMatchObject([404, { _error: { status: 404 } }]);
  const wrong = await failure(client.createChildTag?.({ tag_id: at(company.tags, 0) }, { name: '' }));
  expect([wrong.status, wrong.data]).toMatchObject([422, { _error: { status: 422 } }]);
  const report = { metrics: ['messages_received'] };
  await client.createReport?.(undefined, report).catch(() => undefined);
  const tooSoon = await failure(client.createReport?.(undefined, report));
  expect(tooSoon.status).toBe(429);
  expect(Number(tooSoon.headers['retry-after'])).toBeGreaterThan(0);
  expect(Number(tooSoon.headers['x-ratelimit-remaining'])).toBeGreaterThan(0);
});

test('got pages through a list by _pagination.next', async () => {
  const { service, token } = await start();
  const ids = await got.paginate.all<{ id: string }, Page>(`${service.sandbox.apiUrl}/contacts`, {
    headers: { authorization: `Bearer ${token}` },
    searchParams: { limit: 50 },
    responseType: 'json',
    pagination: {
      transform: ({ body }) => body._results,
      paginate: ({ response: { body } }) => {
        const { next } = body._pagination;
        return next === null
          ? false
          : { url: new URL(next), searchParams: new URLSearchParams(new URL(next).search) };
      },
    },
  });
  expect(new Set(ids.map(({ id }) => id)).size).toBe(230);
});
