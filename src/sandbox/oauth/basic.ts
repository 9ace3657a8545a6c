import { createHash, timingSafeEqual } from 'node:crypto';
import type { Application, Applications } from '../state/applications.ts';

function sameText(left: string, right: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(left), digest(right));
}

/**
 * The application whose credentials a request carries, or undefined when they are missing or wrong.
 *
 * The header must be exactly `Basic <BASE64(client_id:client_secret)>` (Authentication, 5): split at the first colon,
 * and, other than in RFC 6749, section 2.3.1, not form-encoded before.
 */
export function authenticateClient(
  applications: Applications,
  authorization: string | undefined,
): Application | undefined {
  const [, encoded] = /^Basic +(\S+)$/i.exec(authorization ?? '') ?? [];
  if (encoded === undefined) return undefined;
  const bytes = Buffer.from(encoded, 'base64');
  if (bytes.toString('base64') !== encoded) return undefined;
  const credentials = bytes.toString('utf8');
  const colon = credentials.indexOf(':');
  if (colon < 0) return undefined;
  const application = applications.get(credentials.slice(0, colon));
  return application && sameText(application.clientSecret, credentials.slice(colon + 1))
    ? application
    : undefined;
}
