import { describe, expect, it } from 'vitest';
import { authorizeError, exchangeError } from '../../src/auth/install-errors.ts';
import { type TokenRefusal, TokenRequestError } from '../../src/auth/oauth-client.ts';

describe('at the authorize route', () => {
  it.each([
    ['access_denied', null, 'denied'],
    ['access_denied', 'Only administrators may authorize', 'not_administrator'],
    ['access_denied', 'An Admin is needed', 'not_administrator'],
    ['unauthorized_client', 'The user must be an administrator', 'not_administrator'],
    ['access_denied', 'Authorizing apps requires the admin role', 'not_administrator'],
    ['access_denied', 'Declined: you aren’t a company administrator', 'not_administrator'],
    ['access_denied', 'This action is restricted to administrators', 'not_administrator'],
    ['access_denied', 'insufficient permissions: admin only', 'not_administrator'],
    ['admin_required', null, 'not_administrator'],
    ['account_suspended', 'Only an admin can lift the suspension', 'refused'],
    ['access_denied', 'The administrator declined the request', 'denied'],
    ['access_denied', 'Declined. If you need help, contact your administrator.', 'denied'],
    ['access_denied', 'The user badministered it', 'denied'],
    ['server_error', 'Only an administrator can see what is wrong', 'refused'],
    ['', null, 'refused'],
  ])('%s, %j is told as %s', (error, description, kind) => {
    expect(authorizeError(error, description).kind).toBe(kind);
  });

  it('repeats a little of the service’s own words', () => {
    expect(authorizeError('server_error', 'try later').message).toContain('server_error: try later');
    expect(authorizeError('access_denied', 'x '.repeat(5_000)).message.length).toBeLessThan(400);
  });
});

describe('at the token route', () => {
  it.each<[Partial<TokenRefusal>, string]>([
    [{ status: undefined }, 'unreachable'],
    [{ status: 400, code: 'invalid_grant' }, 'code'],
    [
      { status: 400, code: 'invalid_grant', description: 'Only administrators may authorize.' },
      'not_administrator',
    ],
    [{ status: 400, code: 'invalid_grant', description: 'redirect_uri mismatch' }, 'credentials'],
    [
      {
        status: 400,
        code: 'invalid_grant',
        description: 'It is expired, or does not match the redirection URI',
      },
      'code',
    ],
    [{ status: 401, code: 'invalid_client' }, 'credentials'],
    [{ status: 401 }, 'credentials'],
    [
      { status: 401, code: 'invalid_client', description: 'Only an administrator may renew the secret' },
      'credentials',
    ],
    [{ status: 400, code: 'unauthorized_client' }, 'credentials'],
    [{ status: 400, code: 'constructor' }, 'refused'],
    [{ status: 429, retryAfterMs: 48_000 }, 'busy'],
    [{ status: 302 }, 'trouble'],
    [{ status: 200 }, 'trouble'],
    [{ status: 503 }, 'trouble'],
  ])('%j is told as %s', (facts, kind) => {
    const refusal = {
      status: 400,
      code: undefined,
      description: undefined,
      retryAfterMs: undefined,
      ...facts,
    };
    const error = exchangeError(new TokenRequestError(refusal, new Error('cause')));
    expect(error).toMatchObject({ kind, message: expect.stringMatching(/^The service.+\.$/) });
  });

  it('keeps the service’s own words for the log, without secrets', () => {
    const description = 'redirect_uri mismatch for Bearer abcdefgh12345678ijkl';
    const refusal = { status: 400, code: 'invalid_grant', description };
    const { cause } = exchangeError(new TokenRequestError(refusal, new Error('cause')));
    expect((cause as Error).message).toBe(
      'The token request failed (400: invalid_grant, redirect_uri mismatch for Bearer [redacted]).',
    );
  });
});
