import { HEADER } from '../../contract/headers.ts';
import { Problem } from '../http/answer.ts';
import type { Application } from '../state/applications.ts';
import type { World } from '../world.ts';
import { askServer, type ChannelIdentity, type Finding } from './ask-server.ts';
import type { CallOutcome } from './call-log.ts';

/** What a server did when it gave no name and address. */
function failureOf({ outcome, status }: Finding, timeoutMs: number): string {
  switch (outcome) {
    case 'inactive':
      return 'says that the token is not active';
    case 'wrong status':
      return `answered with the status ${status}`;
    case 'redirect':
      return 'answered with a redirect, which is not followed';
    case 'too large':
      return 'answered too much';
    case 'timeout':
      return `did not answer within ${timeoutMs} milliseconds`;
    case 'unreachable':
      return 'could not be reached';
    default:
      return 'answered something else than a JSON object with active, name and address';
  }
}

/**
 * Lets the service ask an application's server about a token, within the limit for such calls, and writes the call down.
 *
 * Throws a {@link Problem}: 422 when the server gives no name and address, 429 when it was called 600 times in this
 * minute (Limits, "Other rate limits"). It is not called then, and 429 is what the specification has for a rate limit
 * that is exceeded (Errors): whoever reads `retry-after` for the other limits waits here too, and may safely try again.
 */
export async function introspect(
  { clock, settings, calls, callLimiter }: World,
  application: Application,
  url: URL,
  companyId: string,
  token: string,
): Promise<ChannelIdentity> {
  const { callTimeoutMs } = settings;
  const { clientId, name } = application;
  const at = clock.now();
  const startedAt = performance.now();
  const log = (outcome: CallOutcome, status?: number) =>
    calls.add({
      at,
      application: clientId,
      companyId,
      url: url.origin + url.pathname,
      status,
      outcome,
      durationMs: performance.now() - startedAt,
    });
  const wait = callLimiter.take(clientId, at);
  if (wait > 0) {
    log('limit');
    const message = `Rate limit of calls to the server of ${name} exceeded. Please retry in ${wait} milliseconds.`;
    throw new Problem(429, message, { [HEADER.retryAfter]: String(Math.ceil(wait / 1000)) });
  }
  const finding = await askServer(application, url, token, callTimeoutMs);
  log(finding.outcome, finding.status);
  if (finding.outcome === 'active') return finding.identity;
  const message = `the server of ${name}, which names this channel, ${failureOf(finding, callTimeoutMs)}`;
  throw new Problem(422, `settings.token: ${message}.`);
}
