import { ResponseBodyError, WWWAuthenticateChallengeError } from 'openid-client';
import { expect, test } from 'vitest';
import { authorizeFailure, exchangeFailure } from '../../src/install/install-failures.ts';
import { InstallError } from '../../src/install/install-types.ts';

test.each([
  ['access_denied', null, 'denied'],
  ['access_denied', 'The user said no', 'denied'],
  ['access_denied', 'Only administrators may authorize', 'not_administrator'],
  ['access_denied', 'An Admin is needed', 'not_administrator'],
  ['unauthorized_client', 'The user must be an administrator', 'not_administrator'],
  ['access_denied', 'The user badministered it', 'denied'],
  ['server_error', null, 'refused'],
  ['invalid_scope', 'ask an admin', 'refused'],
  ['', null, 'refused'],
])('at the authorize route: %s, %j', (error, description, failure) => {
  const installError = authorizeFailure(error, description);
  expect(installError).toBeInstanceOf(InstallError);
  expect(installError.failure).toBe(failure);
});

test('the service’s own words go along, and not too many of them', () => {
  expect(authorizeFailure('server_error', 'try later').message).toContain('server_error: try later');
  expect(authorizeFailure('server_error', 'x'.repeat(5_000)).message.length).toBeLessThan(400);
});

function responseBodyError(error: string): ResponseBodyError {
  const response = new Response(null, { status: 400 });
  return new ResponseBodyError('refused', { cause: { error, error_description: 'secret-code' }, response });
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
  const response = new Response(null, { status: 400 });
  const cause = { error: 'invalid_grant', error_description: 'Only administrators may authorize.' };
  const failure = exchangeFailure(new ResponseBodyError('refused', { cause, response }));
  expect(failure.failure).toBe('not_administrator');
  expect(failure.message).toContain('only administrators');
});

test('a challenge at the token route is about the app’s credentials', () => {
  const error = new WWWAuthenticateChallengeError('challenged', {
    cause: [{ scheme: 'basic', parameters: {} }],
    response: new Response(null, { status: 401 }),
  });
  expect(exchangeFailure(error).failure).toBe('credentials');
});

test.each([new TypeError('fetch failed'), new Error('went wrong', { cause: new TypeError('terminated') })])(
  'without an answer from there: it cannot be reached (%s)',
  (error) => {
    expect(exchangeFailure(error)).toMatchObject({ failure: 'unreachable', cause: error });
  },
);

test.each([
  [503, /answered that it has trouble \(503\)/],
  [429, /asked too often at the moment \(429\)/],
  [200, /something that the app cannot use \(status 200\)/],
])('an answer from there that is no refusal is told by its status: %i', (status, words) => {
  const error = new Error('unexpected', { cause: new Response(null, { status }) });
  const failure = exchangeFailure(error);
  expect(failure).toMatchObject({ failure: 'trouble', cause: error });
  expect(failure.message).toMatch(words);
});

test.each([new Error('no refresh token'), 'nonsense', undefined])(
  'whatever else goes wrong there: it has answered, but not as it should (%s)',
  (error) => {
    expect(exchangeFailure(error)).toMatchObject({ failure: 'trouble', cause: error });
  },
);
