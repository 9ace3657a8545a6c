import { randomUUID } from 'node:crypto';
import type { Database } from '../../src/store/database.ts';
import { InstallStore } from '../../src/store/installs.ts';
import type { GrantedTokens } from '../../src/store/token-table.ts';

/** Stores an install of an instance as a callback does, with these tokens. @param now milliseconds since 1970 */
export async function installInstance(
  db: Database,
  instance: { id: string; company_id?: string | null; name?: string },
  now: number,
  tokens: Partial<GrantedTokens> = {},
): Promise<void> {
  const installs = new InstallStore(db);
  const [stateHash, nonceHash, newSid] = [randomUUID(), randomUUID(), randomUUID()];
  await installs.begin({ stateHash, nonceHash }, undefined, now);
  await installs.claim(stateHash, null, now);
  const { id, company_id = id.replace('ins', 'cmp'), name = id } = instance;
  await installs.complete(
    stateHash,
    { id, company_id, name },
    {
      access_token: 'encrypted',
      refresh_token: 'encrypted',
      access_expires_at: now,
      refresh_issued_at: now,
      refresh_due_at: now,
      refreshed_at: now,
      ...tokens,
    },
    { nonceHashes: [nonceHash], carriedSid: undefined, newSid },
    now,
    [],
  );
}
