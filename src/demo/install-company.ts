import type { Browser } from './browser.ts';
import type { DemoCompany } from './companies.ts';

/** Why a company could not be installed or synced, for people. */
export class DemoError extends Error {
  override readonly name = 'DemoError';
}

/**
 * Installs a company of the sandbox as one of its teammates. An administrator who installs it again sees it again.
 *
 * @returns the path of its dashboard
 * @throws DemoError when the app uses another service, or refuses the install
 */
export async function installCompany(
  browser: Browser,
  sandboxUrl: string,
  { name }: DemoCompany,
  teammateId: string,
): Promise<string> {
  const consent = await browser.open('/install');
  const isOther = consent.status === 200 && consent.url.origin !== new URL(sandboxUrl).origin;
  // Consent to a real service is for people.
  if (isOther) throw new DemoError(`The app installs at ${consent.url.origin}, not at ${sandboxUrl}.`);
  const { status, url, body } =
    consent.status === 200
      ? await browser.open(consent.url, { teammate_id: teammateId, decision: 'approve' })
      : consent;
  if (status === 200 && url.pathname.startsWith('/instances/')) return url.pathname;
  const reason = reasonIn(body) ?? `${url.origin}${url.pathname} answered ${status}.`;
  throw new DemoError(`${name} could not be installed: ${reason}`);
}

function reasonIn(body: string): string | undefined {
  try {
    const { title, message } = JSON.parse(body)._error;
    return `${title}. ${message}`;
  } catch {
    return undefined;
  }
}
