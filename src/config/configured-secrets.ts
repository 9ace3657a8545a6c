import type { Config } from '../config.ts';

/**
 * The secrets among what can be set from outside, as they stand there.
 *
 * @param redisUrl of the Redis that is used, the private one, too: its password may be one of them
 */
export function configuredSecrets(
  { service, sessionSecret, tokenKeys, operatorPassword, databaseUrl }: Config,
  redisUrl: string,
): string[] {
  return [
    service.clientSecret,
    sessionSecret,
    operatorPassword ?? '',
    ...tokenKeys.map(({ key }) => key.toString('base64').replace(/=+$/, '')),
    passwordOf(redisUrl),
    ...(databaseUrl.startsWith('file:')
      ? []
      : [passwordOf(databaseUrl), new URL(databaseUrl).searchParams.get('password') ?? '']),
  ].filter((secret) => secret !== '');
}

function passwordOf(url: string): string {
  return decodeURIComponent(new URL(url).password);
}
