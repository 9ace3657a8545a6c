import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { deserialize, serialize } from 'node:v8';
import type { World } from '../world.ts';
import type { Token } from './tokens.ts';

/** The newest valid tokens that are kept: far more than a developer's machine has instances. */
const MOST_KEPT = 500;

/**
 * Keeps a world's valid tokens in a file: after a restart of app and sandbox, perhaps with other code, nobody has to
 * authorize again. Nothing else outlives the process. Tokens of one grant share it in the file, too.
 */
export function keepTokens(world: World, file: string): void {
  world.tokens.onIssue = () => {
    const kept = world.tokens.valid(world.clock.now(), MOST_KEPT).reverse();
    writeFileSync(`${file}.new`, serialize(kept), { mode: 0o600 });
    renameSync(`${file}.new`, file);
  };
}

/** Takes the kept tokens into a new world, if their application and company are there. Without a file, none. */
export function restoreTokens(world: World, file: string): void {
  for (const token of readKept(file)) {
    const { clientId, companyId } = token.grant;
    if (world.applications.get(clientId) && world.companies.get(companyId)) world.tokens.add(token);
  }
}

function readKept(file: string): Token[] {
  try {
    return deserialize(readFileSync(file)) as Token[];
  } catch {
    // Not there yet, or not ours: then there is nothing to go on with.
    return [];
  }
}
