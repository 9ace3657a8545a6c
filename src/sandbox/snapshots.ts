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

/** Copies the world, all its parts together: tokens and codes share their grants. */
function takeSnapshot(world: World): Snapshot {
  const parts = Object.fromEntries(KEPT.map((part) => [part, world[part].state])) as Kept;
  return { parts: structuredClone(parts), now: world.clock.now(), frozen: world.clock.frozen };
}

/** Puts the world back to where a snapshot was taken, as often as one likes. */
function restoreSnapshot(world: World, { parts, now, frozen }: Snapshot): void {
  world.clock.freeze(frozen);
  world.clock.set(now);
  const copies = structuredClone(parts);
  for (const part of KEPT) Object.assign(world[part], { state: copies[part] });
  world.tokens.onIssue();
}

/** So many snapshots are kept; the oldest goes first. */
const SNAPSHOTS_KEPT = 20;

/** Worlds that were kept to come back to. They outlive a reset; numbers go on, so that no id is given twice. */
export class Snapshots {
  readonly #kept = new Map<string, Snapshot>();
  #count = 0;

  /** Keeps the world as it is, and answers the snapshot's id. */
  take(world: World): string {
    this.#count += 1;
    const id = `snp_${this.#count}`;
    setBounded(this.#kept, id, takeSnapshot(world), SNAPSHOTS_KEPT);
    return id;
  }

  /** Puts the world back, as often as one likes. Throws a {@link Problem} (404) for a snapshot that there is not. */
  restore(world: World, id: string): void {
    const snapshot = this.#kept.get(id);
    if (snapshot === undefined) {
      throw new Problem(404, `There is no snapshot ${id}: the newest ${SNAPSHOTS_KEPT} are kept.`);
    }
    restoreSnapshot(world, snapshot);
  }

  /** Those that are kept, oldest first; `at` is what the service's clock said, in ms since 1970. */
  list(): { id: string; at: number; frozen: boolean }[] {
    return [...this.#kept].map(([id, { now, frozen }]) => ({ id, at: now, frozen }));
  }
}

/** Begins a file, before the checksum of what follows; counts up when snapshots change their form. */
const FILE_MARK = 'sandbox snapshot 1';

function fileHead(content: Uint8Array): string {
  return `${FILE_MARK} ${createHash('sha256').update(content).digest('hex')}\n`;
}

/** Writes the world as it is to a file. There are valid tokens in it. */
export function saveWorld(world: World, file: string): void {
  // Node's own format: it keeps that tokens share their grant, which JSON does not.
  const content = serialize(takeSnapshot(world));
  writeFileSync(file, Buffer.concat([Buffer.from(fileHead(content)), content]), { mode: 0o600 });
}

/** Puts the world back to where a file was saved. Throws an Error that names the file when it cannot be read. */
export function loadWorld(world: World, file: string): void {
  const bytes = readFileSync(file);
  const end = bytes.indexOf('\n') + 1;
  const [head, content] = [bytes.toString('latin1', 0, end), bytes.subarray(end)];
  if (!head.startsWith('sandbox snapshot ')) throw new Error(`${file} is no snapshot of a sandbox.`);
  if (!head.startsWith(`${FILE_MARK} `)) {
    throw new Error(`${file} was saved by another version of the sandbox: save it anew.`);
  }
  if (head !== fileHead(content)) throw new Error(`${file} is damaged: save it anew.`);
  restoreSnapshot(world, deserialize(content));
}

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
