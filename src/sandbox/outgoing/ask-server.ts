import { z } from 'zod';
import type { Application } from '../state/applications.ts';
import type { CallOutcome } from './call-log.ts';
import { postForm } from './post-form.ts';

const NAME_MAX = 200;
const ADDRESS_MAX = 500;

/** What an external service calls a channel (Authentication, 10). */
export interface ChannelIdentity {
  name: string;
  address: string;
}

/** What came of asking: who the channel is, or why that is not known. */
export type Finding =
  | { outcome: 'active'; status: number; identity: ChannelIdentity }
  | { outcome: Exclude<CallOutcome, 'active' | 'limit'>; status?: number };

const active = z.looseObject({
  active: z.literal(true),
  name: z.string().trim().min(1).max(NAME_MAX),
  address: z.string().trim().min(1).max(ADDRESS_MAX),
});
const inactive = z.looseObject({ active: z.literal(false) });

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function understand(status: number, text: string): Finding {
  const answer = parse(text);
  const { data } = active.safeParse(answer);
  if (data !== undefined) {
    return { outcome: 'active', status, identity: { name: data.name, address: data.address } };
  }
  return { outcome: inactive.safeParse(answer).success ? 'inactive' : 'not understood', status };
}

/**
 * Asks an application's server who the channel behind a token is. How is not shown in the specification (Authentication,
 * 10), so it is as in RFC 7662, section 2: a form with the token, and the application's Basic credentials.
 *
 * @param timeoutMs real milliseconds until the answer must be there
 */
export async function askServer(
  { clientId, clientSecret }: Application,
  url: URL,
  token: string,
  timeoutMs: number,
): Promise<Finding> {
  // As for the token route: not form-encoded before (Authentication, 5).
  const authorization = `Basic ${Buffer.from(`${clientId}:${clientSecret}`).toString('base64')}`;
  const reply = await postForm(url, authorization, { token }, timeoutMs);
  if (typeof reply === 'string') return { outcome: reply };
  const { status, body } = reply;
  if (status >= 300 && status < 400) return { outcome: 'redirect', status };
  return status === 200 ? understand(status, body) : { outcome: 'wrong status', status };
}
