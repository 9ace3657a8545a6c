import { TokenCipher } from '../../src/auth/token-cipher.ts';
import { encryptTokens } from '../../src/auth/tokens.ts';
import type { Database } from '../../src/store/database.ts';
import { type Company, TestSandbox } from '../sandbox/support/test-sandbox.ts';
import { installInstance } from './install-instance.ts';
import type { TestApp } from './test-app.ts';

const YEAR_MS = 365 * 24 * 3_600_000;

/** A new company of the sandbox that has installed the app, without a browser: with a grant, and without a run. */
export async function installCompany(
  { config, sandbox }: TestApp,
  db: Database,
  facts: { contacts?: number; conversations?: number },
): Promise<{ id: string; company: Company }> {
  const service = new TestSandbox(sandbox);
  const company = await service.company({ plan: 'enterprise', conversations: 0, ...facts });
  const grant = await service.install(company);
  const id = `ins_${company.id}`;
  const cipher = new TokenCipher(config.tokenKeys);
  const now = Date.now();
  await installInstance(db, { id, company_id: company.id, name: company.name }, now, {
    ...encryptTokens(cipher, id, grant.access_token, grant.refresh_token),
    access_expires_at: now + YEAR_MS,
    refresh_due_at: now + YEAR_MS,
  });
  return { id, company };
}
