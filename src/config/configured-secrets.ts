import type { Config } from '../config.ts';

/**
 * The secrets among what can be set from outside, as they stand there.
 *
 * @param redisUrl of the Redis that is used, the private one, too: its password may be one of them
 */
export function configuredSecrets(
  { service, sessionSecret, tokenKeys, operatorPassword }: Config,
  redisUrl: string,
): string[] {
  return [
    service.clientSecret,
    sessionSecret,
    operatorPassword ?? '',
    ...tokenKeys.map(({ key }) => key.toString('base64').replace(/=+$/, '')),
    decodeURIComponent(new URL(redisUrl).password),
  ].filter((secret) => secret !== '');
}
