import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import type { World } from '../world.ts';
import type { Grant, Token } from './tokens.ts';

/** The newest valid tokens that are kept: far more than a developer's machine has instances. */
const MOST_KEPT = 500;

/** A token in the file; `grant` is the same number for tokens of one grant. */
interface KeptToken {
  kind: Token['kind'];
  value: string;
  issuedAt: number;
  expiresAt: number;
  grant: number;
  granted: Grant;
}

/**
 * Keeps a world's valid tokens in a file, so that whoever starts app and sandbox again, with other code perhaps, is not
 * asked for a new authorization. Nothing else outlives the process.
 */
export function keepTokens(world: World, file: string): void {
  world.tokens.onIssue = () => {
    const grants = new Map<Grant, number>();
    const kept = world.tokens.valid(world.clock.now(), MOST_KEPT).map((token): KeptToken => {
      const { grant } = token;
      if (!grants.has(grant)) grants.set(grant, grants.size);
      return {
        kind: token.kind,
        value: token.value,
        issuedAt: token.issuedAt,
        expiresAt: token.expiresAt,
        grant: grants.get(grant) ?? 0,
        granted: grant,
      };
    });
    writeFileSync(`${file}.new`, JSON.stringify(kept.reverse()), { mode: 0o600 });
    renameSync(`${file}.new`, file);
  };
}

/** Takes the kept tokens into a new world, those whose application and company are there. Without a file, none. */
export function restoreTokens(world: World, file: string): void {
  const grants = new Map<number, Grant>();
  for (const kept of readKept(file)) {
    const { clientId, companyId } = kept.granted;
    if (!world.applications.get(clientId) || !world.companies.get(companyId)) continue;
    const grant = grants.get(kept.grant) ?? kept.granted;
    grants.set(kept.grant, grant);
    const { kind, value, issuedAt, expiresAt } = kept;
    world.tokens.add({ kind, value, issuedAt, expiresAt, grant });
  }
}

function readKept(file: string): KeptToken[] {
  try {
    const kept: KeptToken[] = JSON.parse(readFileSync(file, 'utf8'));
    return kept.filter(({ granted }) => granted !== undefined);
  } catch {
    // Not there yet, or not ours: then there is nothing to go on with.
    return [];
  }
}
