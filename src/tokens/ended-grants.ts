import type { EndedGrant, TokenStore } from '../store/tokens.ts';
import { opens } from './key-checks.ts';
import type { Application } from './oauth-client.ts';
import { CHANGED_MESSAGES, type Vault } from './vault.ts';

/** Why the end of a grant was taken back, as the log says it. */
export type AwakeReason =
  | 'the tokens open again: the grant goes on'
  | 'the grant was refused to another application: it is tried again';

/** Behind it, at the end of a notice, stands who was refused: words without spaces, which cannot hold it again. */
const ASKED_AS = ' (For whoever runs this app: the service was asked with CLIENT_ID ';

/** What is told of tokens that their key does not open. */
const UNOPENED = CHANGED_MESSAGES.flatMap((reason) => [endNotice(reason, null), endNotice(reason, 'known')]);

/**
 * What an administrator is told of the end of a grant.
 *
 * @param companyId null where the service does not tell: then nobody knows that a new authorization is for the same one
 */
export function endNotice(reason: string, companyId: string | null): string {
  return companyId === null
    ? `${reason} The service does not say whose an authorization is, so a new one begins a copy of its own; what is copied here is kept until it is disconnected.`
    : `${reason} Authorize the app again to go on; everything copied so far is kept.`;
}

/**
 * What is told of the end of a grant that the service has refused. It says to whom: the service refuses a refresh token
 * in the same way when it is another application's, or another environment's (RFC 6749, section 5.2).
 */
export function refusalNotice(reason: string, companyId: string | null, application: Application): string {
  return endNotice(reason, companyId) + askedAs(application);
}

function askedAs({ clientId, authUrl }: Application): string {
  return `${ASKED_AS}${clientId} at ${authUrl}.)`;
}

/**
 * Takes back the ends of grants that this process has reason to doubt.
 *
 * - Their tokens did not open, and do now: with a key that was wrong, or after they were restored. An envelope that opens
 *   is what was sealed for this instance, to the last bit: nothing is guessed.
 * - The service has refused them to another application than this one, or elsewhere: whether they are over, only this one
 *   can ask. If they are, that is noted with its name, and stays.
 *
 * @returns the instances, which are active again
 */
export async function takeBackEnds(
  { store, vault }: { store: TokenStore; vault: Vault },
  application: Application,
): Promise<{ instanceId: string; reason: AwakeReason }[]> {
  const doubted = new Map<EndedGrant, AwakeReason>();
  for (const ended of await store.listEnded()) {
    if (wasAskedByAnother(ended.notice, application)) {
      doubted.set(ended, 'the grant was refused to another application: it is tried again');
    } else if (UNOPENED.includes(ended.notice) && opensWhole(vault, ended)) {
      doubted.set(ended, 'the tokens open again: the grant goes on');
    }
  }
  if (doubted.size === 0) return [];
  const awake = new Set(await store.takeBackEnds([...doubted.keys()]));
  return [...doubted].flatMap(([{ instance_id: instanceId }, reason]) =>
    awake.has(instanceId) ? [{ instanceId, reason }] : [],
  );
}

function opensWhole(vault: Vault, ended: EndedGrant): boolean {
  return opens(vault, ended, 'access_token') && opens(vault, ended, 'refresh_token');
}

/** Whether a notice names another application, or another place. One from before it named any tells nothing. */
function wasAskedByAnother(notice: string, application: Application): boolean {
  const at = notice.lastIndexOf(ASKED_AS);
  return at !== -1 && notice.slice(at) !== askedAs(application);
}
