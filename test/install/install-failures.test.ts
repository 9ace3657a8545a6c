import { ResponseBodyError, WWWAuthenticateChallengeError } from 'openid-client';
import { expect, test } from 'vitest';
import { authorizeFailure, exchangeFailure } from '../../src/install/install-failures.ts';
import { InstallError } from '../../src/install/install-types.ts';
import { NoTokenAnswerError } from '../../src/tokens/token-answer.ts';

test.each([
  ['access_denied', null, 'denied'],
  ['access_denied', 'The user said no', 'denied'],
  ['access_denied', 'Only administrators may authorize', 'not_administrator'],
  ['access_denied', 'An Admin is needed', 'not_administrator'],
  ['unauthorized_client', 'The user must be an administrator', 'not_administrator'],
  ['access_denied', 'Only an administrator of the company may authorize.', 'not_administrator'],
  ['access_denied', 'This can only be done by admins.', 'not_administrator'],
  ['access_denied', 'Administrator rights are required', 'not_administrator'],
  ['access_denied', 'You need to be an admin of this account', 'not_administrator'],
  ['access_denied', 'Authorizing apps requires the admin role', 'not_administrator'],
  ['access_denied', 'Declined: you aren’t a company administrator', 'not_administrator'],
  ['access_denied', 'This action is restricted to administrators', 'not_administrator'],
  ['access_denied', 'insufficient permissions: admin only', 'not_administrator'],
  ['forbidden', 'Only administrators can authorize applications', 'not_administrator'],
  ['admin_required', null, 'not_administrator'],
  ['insufficient_permissions', 'This needs an admin role', 'not_administrator'],
  ['account_suspended', 'Only an admin can lift the suspension', 'refused'],
  ['consent_required', 'Admin consent is not required.', 'refused'],
  ['temporarily_unavailable', 'Only administrators can get in now', 'refused'],
  ['access_denied', 'Your role does not permit this', 'denied'],
  ['access_denied', 'The administrator declined the request', 'denied'],
  ['access_denied', 'Declined. If you need help, contact your administrator.', 'denied'],
  ['access_denied', 'The user badministered it', 'denied'],
  ['server_error', null, 'refused'],
  ['invalid_scope', 'ask an admin', 'refused'],
  ['server_error', 'Only an administrator can see what is wrong', 'refused'],
  ['', null, 'refused'],
])('at the authorize route: %s, %j', (error, description, failure) => {
  const installError = authorizeFailure(error, description);
  expect(installError).toBeInstanceOf(InstallError);
  expect(installError.failure).toBe(failure);
});

test('of words without an end the first ones are read', () => {
  const words = (count: number) => `${'only '.repeat(count)}an administrator`;
  expect(authorizeFailure('access_denied', words(10)).failure).toBe('not_administrator');
  expect(authorizeFailure('access_denied', words(1_000_000)).failure).toBe('denied');
});

test('the service’s own words go along, and not too many of them', () => {
  expect(authorizeFailure('server_error', 'try later').message).toContain('server_error: try later');
  expect(authorizeFailure('server_error', 'x'.repeat(5_000)).message.length).toBeLessThan(400);
  expect(authorizeFailure('x'.repeat(5_000), null).message).toBe(
    'The service answered with an error: (one long word)',
  );
  const denied = authorizeFailure('access_denied', 'Your role does not permit this').message;
  expect(denied).toBe(
    'The authorization was declined at the service. It says: Your role does not permit this',
  );
  expect(authorizeFailure('access_denied', 'x'.repeat(5_000)).message.length).toBeLessThan(400);
});

function responseBodyError(error: string, description: unknown = 'secret-code'): ResponseBodyError {
  const response = new Response(null, { status: 400 });
  return new ResponseBodyError('refused', {
    cause: { error, error_description: description as string },
    response,
  });
}

test.each([
  ['invalid_grant', 'code'],
  ['invalid_client', 'credentials'],
  ['unauthorized_client', 'credentials'],
  ['invalid_request', 'refused'],
  ['unsupported_grant_type', 'refused'],
  ['constructor', 'refused'],
])('at the token route: %s', (error, failure) => {
  const cause = responseBodyError(error);
  const installError = exchangeFailure(cause);
  expect(installError).toMatchObject({ failure, cause });
  expect(installError.message).toMatch(/^The service .+\.$/);
  expect(installError.message).not.toContain('secret-code');
});

test('at the token route, a refusal is repeated by its beginning at the most', () => {
  const long = exchangeFailure(responseBodyError(`slow_down ${'a-'.repeat(20_000)}`));
  expect(long.message).toBe('The service refused the exchange of the code (slow_down …).');
});

test('at the token route, a refusal for want of an administrator is told as that', () => {
  const failure = exchangeFailure(responseBodyError('invalid_grant', 'Only administrators may authorize.'));
  expect(failure.failure).toBe('not_administrator');
  expect(failure.message).toContain('only administrators');
});

test.each([
  ['invalid_client', 'The client secret has expired. Contact your administrator.', 'credentials'],
  ['invalid_client', 'Only an administrator of the app may renew its secret.', 'credentials'],
  ['invalid_grant', 'The code has expired. If this goes on, ask the administrator of the app.', 'code'],
  ['invalid_request', 'redirect_uri must be one that an administrator has registered', 'refused'],
  ['invalid_grant', { reason: 'Only administrators may authorize.' }, 'code'],
])(
  'at the token route, one that only mentions an administrator is told as what it is: %s, %j',
  (error, description, failure) => {
    expect(exchangeFailure(responseBodyError(error, description)).failure).toBe(failure);
  },
);

test.each([
  ['for the app’s credentials is about those', 'basic', 'credentials'],
  ['for a token is none of the app’s credentials', 'bearer', 'trouble'],
] as const)('a challenge at the token route %s', (_what, scheme, failure) => {
  const error = new WWWAuthenticateChallengeError('challenged', {
    cause: [{ scheme, parameters: {} }],
    response: new Response(null, { status: 401 }),
  });
  expect(exchangeFailure(error).failure).toBe(failure);
});

test.each([
  new NoTokenAnswerError('reset'),
  new Error('went wrong', { cause: new NoTokenAnswerError('reset') }),
])('without an answer from there: it cannot be reached (%s)', (error) => {
  expect(exchangeFailure(error)).toMatchObject({ failure: 'unreachable', cause: error });
});

test.each([
  [503, /answered that it has trouble \(503\)/],
  [200, /something that the app cannot use \(status 200\)/],
])('an answer from there that is no refusal is told by its status: %i', (status, words) => {
  const error = new Error('unexpected', { cause: new Response(null, { status }) });
  const failure = exchangeFailure(error);
  expect(failure).toMatchObject({ failure: 'trouble', cause: error });
  expect(failure.message).toMatch(words);
});

test.each([
  ['', 'The service answered that it is asked too often at the moment (429).'],
  ['48', / It asks to wait 48 s\.$/],
  ['86400', / It asks to wait 15 minutes or longer\.$/],
])('one that says that it is asked too often is told with its wait: %j', (wait, words) => {
  const response = new Response(null, { status: 429, headers: { 'retry-after': wait } });
  const failure = exchangeFailure(new Error('unexpected', { cause: response }));
  expect(failure.failure).toBe('busy');
  expect(failure.message).toMatch(words);
});

test.each([new Error('no refresh token'), 'nonsense', undefined])(
  'whatever else goes wrong there: it has answered, but not as it should (%s)',
  (error) => {
    expect(exchangeFailure(error)).toMatchObject({ failure: 'trouble', cause: error });
  },
);
