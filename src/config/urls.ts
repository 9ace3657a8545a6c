import { z } from 'zod';

/**
 * Tells whether a host name means this machine alone.
 *
 * @param hostname as {@link URL.hostname} gives it: lower case, IPv6 in brackets
 */
export function isLoopback(hostname: string): boolean {
  return (
    hostname === 'localhost' ||
    hostname.endsWith('.localhost') ||
    hostname === '[::1]' ||
    /^127(\.\d{1,3}){3}$/.test(hostname)
  );
}

function parseWebUrl(text: string, context: z.RefinementCtx): URL | undefined {
  const url = URL.parse(text);
  if (url === null || !['http:', 'https:'].includes(url.protocol)) {
    context.addIssue('must be an absolute http or https URL');
  } else if (url.username !== '' || url.password !== '') {
    context.addIssue('must not contain a user name or password');
  } else if (text.includes('?') || text.includes('#')) {
    context.addIssue('must not contain a query or a fragment');
  } else {
    return url;
  }
  return undefined;
}

/** An http(s) address without user, query and fragment; comes out normalised, without a slash at its end. */
export const baseUrl = z.string().transform((text, context) => {
  const url = parseWebUrl(text, context);
  return url === undefined ? z.NEVER : url.href.replace(/\/+$/, '');
});

/** Like {@link baseUrl}, without a path: the app's own pages start at the root. */
export const originUrl = z.string().transform((text, context) => {
  const url = parseWebUrl(text, context);
  if (url === undefined) return z.NEVER;
  if (!/^\/*$/.test(url.pathname)) {
    context.addIssue('must not contain a path: the app is served from the root of its host');
    return z.NEVER;
  }
  return url.origin;
});

/**
 * One origin, with `*.` allowed for its first label; comes out normalised, the `*.` kept.
 * A wildcard needs two labels behind it, as the access token is sent there: `https://*.com` would be everybody.
 */
const originPattern = originUrl.transform((origin, context) => {
  const { hostname } = new URL(origin);
  const rest = hostname.replace(/^\*\./, '');
  if (rest.includes('*')) {
    context.addIssue('may have a "*" only as the whole first label of a host');
  } else if (rest !== hostname && !/^[^.]+(\.[^.]+)+$/.test(rest)) {
    context.addIssue('must name at least two labels after "*."');
  } else {
    return origin;
  }
  return z.NEVER;
});

/** Comma-separated origins as in {@link originPattern}. */
export const originPatterns = z
  .string()
  .transform((text) =>
    text
      .split(',')
      .map((part) => part.trim())
      .filter((part) => part !== ''),
  )
  .pipe(z.array(originPattern));
