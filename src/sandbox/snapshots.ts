import { createHash } from 'node:crypto';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { deserialize, serialize } from 'node:v8';
import { Problem } from './http/answer.ts';
import { setBounded } from './state/bounded-map.ts';
import type { Token } from './state/tokens.ts';
import type { World } from './world.ts';

/** The parts of the world that a snapshot holds; the lists of requests and calls go on. */
const KEPT = [
  'companies',
  'applications',
  'codes',
  'tokens',
  'limiter',
  'guards',
  'calls',
  'faults',
] as const;

type Kept = { [Part in (typeof KEPT)[number]]: World[Part]['state'] };

/** The world at one moment: plain data, shared with nothing. */
interface Snapshot {
  parts: Kept;
  now: number;
  frozen: boolean;
}

/** Copies all parts of the world together, because tokens and codes share their grants. */
function takeSnapshot(world: World): Snapshot {
  const parts = Object.fromEntries(KEPT.map((part) => [part, world[part].state])) as Kept;
  return { parts: structuredClone(parts), now: world.clock.now(), frozen: world.clock.frozen };
}

/** Restores a snapshot, any number of times. */
function restoreSnapshot(world: World, { parts, now, frozen }: Snapshot): void {
  world.clock.freeze(frozen);
  world.clock.set(now);
  const copies = structuredClone(parts);
  for (const part of KEPT) Object.assign(world[part], { state: copies[part] });
  world.tokens.onIssue();
}

/** The sandbox keeps so many snapshots, and drops the oldest. */
const SNAPSHOTS_KEPT = 20;

/** The snapshots. They survive a reset; ids count on, so each is new. */
export class Snapshots {
  readonly #kept = new Map<string, Snapshot>();
  #count = 0;

  /** Takes a snapshot, and answers its id. */
  take(world: World): string {
    this.#count += 1;
    const id = `snp_${this.#count}`;
    setBounded(this.#kept, id, takeSnapshot(world), SNAPSHOTS_KEPT);
    return id;
  }

  /** Restores a snapshot. Throws a {@link Problem} (404) for an unknown id. */
  restore(world: World, id: string): void {
    const snapshot = this.#kept.get(id);
    if (snapshot === undefined) {
      throw new Problem(404, `There is no snapshot ${id}: the newest ${SNAPSHOTS_KEPT} are kept.`);
    }
    restoreSnapshot(world, snapshot);
  }

  /** The kept snapshots, oldest first; `at` is the service's time in ms since 1970. */
  list(): { id: string; at: number; frozen: boolean }[] {
    return [...this.#kept].map(([id, { now, frozen }]) => ({ id, at: now, frozen }));
  }
}

/** The first word of a file, before the checksum. The number rises when the format of snapshots changes. */
const FILE_MARK = 'sandbox snapshot 2';

function fileHead(content: Uint8Array): string {
  return `${FILE_MARK} ${createHash('sha256').update(content).digest('hex')}\n`;
}

/** Saves the world to a file. The file contains valid tokens. */
export function saveWorld(world: World, file: string): void {
  // Node's own format: it keeps that tokens share their grant, which JSON does not.
  const content = serialize(takeSnapshot(world));
  writeFileSync(file, Buffer.concat([Buffer.from(fileHead(content)), content]), { mode: 0o600 });
}

/** Loads a saved world. @throws Error that names the file if it cannot be read */
export function loadWorld(world: World, file: string): void {
  const bytes = readFileSync(file);
  const end = bytes.indexOf('\n') + 1;
  const [head, content] = [bytes.toString('latin1', 0, end), bytes.subarray(end)];
  if (!head.startsWith('sandbox snapshot ')) throw new Error(`${file} is no snapshot of a sandbox.`);
  if (!head.startsWith(`${FILE_MARK} `)) {
    throw new Error(`${file} was saved by another version of the sandbox. Save it again.`);
  }
  if (head !== fileHead(content)) throw new Error(`${file} is damaged. Save it again.`);
  restoreSnapshot(world, deserialize(content));
}

/** The number of newest valid tokens to keep: far more than a developer's machine has instances. */
const MOST_KEPT = 500;

/**
 * Keeps the valid tokens of a world in a file, so that nobody authorizes again after a restart of app and sandbox.
 * Nothing else survives the process. Tokens of one grant share it in the file, too.
 */
export function keepTokens(world: World, file: string): void {
  world.tokens.onIssue = () => {
    const kept = world.tokens.valid(world.clock.now(), MOST_KEPT).reverse();
    writeFileSync(`${file}.new`, serialize(kept), { mode: 0o600 });
    renameSync(`${file}.new`, file);
  };
}

/** Restores the kept tokens whose application and company exist. Without a file, there are none. */
export function restoreTokens(world: World, file: string): void {
  let kept: Token[] = [];
  try {
    kept = deserialize(readFileSync(file));
  } catch {
    // Not there yet, or not ours: then there is nothing to go on with.
  }
  for (const token of kept) {
    const { clientId, companyId } = token.grant;
    if (world.applications.get(clientId) && world.companies.get(companyId)) world.tokens.add(token);
  }
}
