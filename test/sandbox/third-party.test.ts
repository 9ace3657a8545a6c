import { OAuth2Client, OAuth2Fetch } from '@badgateway/oauth2-client';
import got from 'got';
import { type Document, OpenAPIClientAxios } from 'openapi-client-axios';
import { describe, expect, test } from 'vitest';
import { ROUTES } from '../../src/contract/api/api.ts';
import { ACCESS_TOKEN_LIFETIME_MS } from '../../src/contract/lifetimes.ts';
import { at, startCompany } from './support/test-sandbox.ts';

// Clients that others wrote work with the sandbox as they would with the service.

interface Page {
  _pagination: { next: string | null };
  _results: { id: string }[];
}

describe('Authentication', () => {
  test('1. and 4. An OAuth library walks through the code grant, and refreshes at a 401', async () => {
    const { service, company } = await startCompany({ contacts: 230, conversations: 20 });
    const application = service.application();
    const [redirectUri, state] = [at(application.redirect_uris, 0), 'made up & unguessable'];
    const client = new OAuth2Client({
      server: `${service.sandbox.authUrl}/`,
      clientId: application.client_id,
      clientSecret: application.client_secret,
      authorizationEndpoint: `${service.sandbox.authUrl}/oauth/authorize`,
      tokenEndpoint: `${service.sandbox.authUrl}/oauth/token`,
      authenticationMethod: 'client_secret_basic_interop',
    });
    const url = await client.authorizationCode.getAuthorizeUri({ redirectUri, state });
    const consent = new URLSearchParams({ teammate_id: at(company.teammates, 0).id, decision: 'approve' });
    const approved = await fetch(url, { method: 'POST', body: consent, redirect: 'manual' });
    const back = approved.headers.get('location') ?? '';
    const first = await client.authorizationCode.getTokenFromCodeRedirect(back, { redirectUri, state });
    const me = await service.call('GET', '/me', first.accessToken);
    expect(me.body).toMatchObject({ id: company.id });
    service.advance(ACCESS_TOKEN_LIFETIME_MS);
    const wrapper = new OAuth2Fetch({ client, getStoredToken: () => first, getNewToken: () => null });
    expect((await wrapper.fetch(`${service.sandbox.apiUrl}/me`)).status).toBe(200);
    const second = await wrapper.getToken();
    expect(second.accessToken).not.toBe(first.accessToken);
    expect(second.refreshToken).toBe(first.refreshToken);
  });
});

describe('clients of others', () => {
  test('openapi-client-axios makes a method of each operation, and hears errors', async () => {
    const { service, company, token } = await startCompany({ contacts: 230, conversations: 20 });
    const response = await fetch(`${service.sandbox.origin}/_sandbox/openapi.json`);
    const definition = (await response.json()) as Document;
    const axiosConfigDefaults = { headers: { authorization: `Bearer ${token}` } };
    const client = await new OpenAPIClientAxios({ definition, axiosConfigDefaults }).init();
    for (const [operation] of ROUTES) expect(client[operation], operation).toBeTypeOf('function');
    const tag_id = at(company.tags, 0);
    const child = await client.createChildTag?.({ tag_id }, { name: 'From afar' });
    expect([child?.status, child?.data.parent_tag_id]).toEqual([201, tag_id]);
    const conversations = (await client.listConversations?.({ limit: 1 }))?.data as Page;
    const conversation_id = at(conversations._results, 0).id;
    const tagged = await client.addConversationTags?.({ conversation_id }, { tag_ids: [child?.data.id] });
    expect(tagged?.headers['x-service-tier']).toBe('2');
    const response422 = expect.objectContaining({ status: 422, data: { _error: expect.anything() } });
    const wrong = client.createChildTag?.({ tag_id }, { name: '' });
    await expect(wrong).rejects.toMatchObject({ isAxiosError: true, response: response422 });
  });

  test('got pages through a list by _pagination.next', async () => {
    const { service, token } = await startCompany({ contacts: 230, conversations: 20 });
    const ids = await got.paginate.all<{ id: string }, Page>(`${service.sandbox.apiUrl}/contacts`, {
      headers: { authorization: `Bearer ${token}` },
      searchParams: { limit: 50 },
      responseType: 'json',
      pagination: {
        transform: ({ body }) => body._results,
        paginate: ({ response: { body } }) => {
          const { next } = body._pagination;
          if (next === null) return false;
          const url = new URL(next);
          return { url, searchParams: new URLSearchParams(url.search) };
        },
      },
    });
    expect(new Set(ids.map(({ id }) => id)).size).toBe(230);
  });
});
