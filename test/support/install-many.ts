import { TokenCipher } from '../../src/auth/token-cipher.ts';
import { encryptTokens } from '../../src/auth/tokens.ts';
import type { Sandbox } from '../../src/sandbox/sandbox.ts';
import type { Company } from '../../src/sandbox/types.ts';
import type { Database } from '../../src/store/database.ts';
import type { TestApp } from './test-app.ts';

const PORTION = 500;
const ROTATION_IN_MS = 30 * 24 * 3_600_000;

/**
 * Writes installs of companies of a sandbox straight into the database. Workers give them their lists.
 *
 * @param clientId of the application that they authorize
 */
export async function installMany(
  db: Database,
  cipher: TokenCipher,
  sandbox: Sandbox,
  companies: readonly Company[],
  clientId = sandbox.application.client_id,
): Promise<string[]> {
  const now = Date.now();
  const rows = companies.map((company) => {
    const id = `ins_${company.id}`;
    const grant = sandbox.tokens(clientId, company);
    const dates = { refresh_issued_at: now, refresh_due_at: now + ROTATION_IN_MS, refreshed_at: now };
    return {
      instance: {
        id,
        company_id: company.id,
        name: company.name,
        status: 'active' as const,
        installed_at: now,
      },
      token: {
        ...encryptTokens(cipher, id, grant.access_token, grant.refresh_token),
        ...{ instance_id: id, access_expires_at: Number(grant.expires_at) * 1_000, ...dates },
        ...{ version: 1, rotations: 0, refreshes: 0 },
      },
    };
  });
  for (let at = 0; at < rows.length; at += PORTION) {
    const portion = rows.slice(at, at + PORTION);
    await db.durably(async (tx) => {
      await tx
        .insertInto('instances')
        .values(portion.map(({ instance }) => instance))
        .execute();
      await tx
        .insertInto('tokens')
        .values(portion.map(({ token }) => token))
        .execute();
    });
  }
  return rows.map(({ instance }) => instance.id);
}

/** A new company of the sandbox that has installed the app, without a run. */
export async function installCompany(
  { config, sandbox }: TestApp,
  db: Database,
  facts: { contacts?: number; conversations?: number },
): Promise<{ id: string; company: Company }> {
  const company = sandbox.company({ name: 'Installed', plan: 'enterprise', conversations: 0, ...facts });
  const [id = ''] = await installMany(db, new TokenCipher(config.tokenKeys), sandbox, [company]);
  return { id, company };
}
