import { OAuth2Client, OAuth2Fetch } from '@badgateway/oauth2-client';
import { describe, expect, test } from 'vitest';
import { ACCESS_TOKEN_LIFETIME_MS } from '../../src/contract/lifetimes.ts';
import { at, startCompany } from './support/test-sandbox.ts';

describe('Authentication', () => {
  test('1. and 4. An OAuth library walks through the code grant, and refreshes at a 401', async () => {
    const { service, company } = await startCompany();
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
