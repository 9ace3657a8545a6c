import { randomBytes } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import fc from 'fast-check';
import { Redis } from 'ioredis';
import { afterAll, expect, test, vi } from 'vitest';
import { ServiceClock } from '../../src/client/service-clock.ts';
import { openDatabase } from '../../src/store/open-database.ts';
import { Vault } from '../../src/tokens/vault.ts';
import { tempDir } from '../support/temp-dir.ts';
import { startTestRedis } from '../support/test-redis.ts';
import { waitFor } from '../support/wait-for.ts';
import { tokenProcess } from '../tokens/token-process.ts';
import { startTokenServer } from '../tokens/token-server.ts';

vi.setConfig({ testTimeout: 120_000 });

const PROCESSES = 3;
const RUNS = 40;
const HOUR_MS = 60 * 60_000;

/** A token route that answers when, and what, the order of steps wants. */
const server = await startTokenServer();
const { url } = await startTestRedis();
const redis = new Redis(url);
const databaseUrl = `file:${tempDir()}/app.db`;
const vault = new Vault([{ id: 'k1', key: randomBytes(32) }]);
// Each with its own connections, as processes have them.
const processes = await Promise.all(
  Array.from({ length: PROCESSES }, async () => {
    const db = await openDatabase(databaseUrl);
    const connection = new Redis(url);
    afterAll(async () => {
      connection.disconnect();
      await db.destroy();
    });
    const clock = new ServiceClock();
    const parts = { db, redis: connection, vault, clock, authUrl: server.url };
    // Any lock may be lost, as those of files on a file system that keeps none: then the versions have to hold.
    return tokenProcess({ ...parts, lockDir: tempDir() });
  }),
);
afterAll(() => redis.disconnect());
const { store, instances } = processes[0] ?? expect.fail();

type Step =
  | { do: 'refresh'; process: number }
  | { do: 'install'; process: number }
  | { do: 'answer'; which: number; how: 'rotated' | 'same' | 'refused' | 'trouble' }
  | { do: 'lose the lock' };

const process = fc.nat(PROCESSES - 1);
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: fc.record({ do: fc.constant('refresh' as const), process }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('install' as const), process }) },
    {
      weight: 4,
      arbitrary: fc.record({
        do: fc.constant('answer' as const),
        which: fc.nat(PROCESSES),
        how: fc.constantFrom('rotated' as const, 'same' as const, 'refused' as const, 'trouble' as const),
      }),
    },
    { weight: 2, arbitrary: fc.constant<Step>({ do: 'lose the lock' }) },
  ),
  { minLength: 3, maxLength: 14 },
);

/** Orders that must be among them: the one who asked loses its lock, and somebody else comes before the answer. */
const OVERTAKEN: Step[][] = (['rotated', 'refused'] as const).flatMap((how) => [
  [
    { do: 'refresh', process: 0 },
    { do: 'lose the lock' },
    { do: 'install', process: 1 },
    { do: 'answer', which: 0, how },
  ],
  [
    { do: 'refresh', process: 0 },
    { do: 'lose the lock' },
    { do: 'refresh', process: 1 },
    { do: 'install', process: 2 },
    { do: 'answer', which: 1, how: 'rotated' },
    { do: 'answer', which: 0, how },
  ],
]);

/** One that has to be among them, too: the newest grant itself is refused. */
const REFUSED: Step[] = [
  { do: 'refresh', process: 0 },
  { do: 'answer', which: 0, how: 'refused' },
];

/** One instance on its way through the steps. A refresh token reads `<number of the install>.<number of the refresh>`. */
class Play {
  readonly #id: string;
  readonly #asked: { response: ServerResponse; install: string }[] = [];
  /** Under way, by process; at most one refresh each, and one install in all. */
  readonly #busy = new Set<string>();
  readonly #refused = new Set<string>();
  #requests = 0;
  #ended = 0;
  #installs = 0;
  #answers = 0;

  constructor(id: string) {
    this.#id = id;
    server.answer = (response) => {
      this.#requests++;
      const sent = new URLSearchParams(server.requests.at(-1)?.body).get('refresh_token') ?? '';
      this.#asked.push({ response, install: sent.split('.')[0] ?? '' });
    };
  }

  async take(step: Step): Promise<void> {
    const { ended, events } = { ended: this.#ended, events: this.#ended + this.#requests };
    const waitsForLock = this.#asked.length > 0 && (await redis.exists(this.#lock)) === 1;
    if (step.do === 'refresh') {
      if (!this.#begin(`refresh ${step.process}`, () => processes[step.process]?.tokens.rotate(this.#id)))
        return;
      if (waitsForLock) return;
    } else if (step.do === 'install') {
      if (!this.#begin('install', () => this.#install(step.process))) return;
      if (waitsForLock) return;
    } else if (step.do === 'answer') {
      const [asked] = this.#asked.splice(step.which % Math.max(1, this.#asked.length), 1);
      if (asked === undefined) return;
      this.#answer(asked, step.how);
      await waitFor(() => this.#ended > ended, { intervalMs: 2 });
      return;
    } else {
      await redis.del(this.#lock);
      if (this.#busy.size <= this.#asked.length) return;
    }
    await waitFor(() => this.#ended + this.#requests > events, { intervalMs: 2 });
  }

  /** Lets all that is under way come to its end. */
  async finish(): Promise<void> {
    while (this.#busy.size > 0) {
      await waitFor(() => this.#busy.size === 0 || this.#asked.length > 0, { intervalMs: 2 });
      for (const asked of this.#asked.splice(0)) this.#answer(asked, 'rotated');
    }
  }

  /** The install that the app's refresh token stems from, the newest install, and whether its grant was refused. */
  async outcome() {
    const row = await store.find(this.#id);
    const token = vault.open(row?.refresh_token ?? '', { instanceId: this.#id, purpose: 'refresh_token' });
    return {
      stored: token.split('.')[0],
      newest: String(this.#installs),
      wasRefused: this.#refused.has(String(this.#installs)),
      status: (await instances.find(this.#id))?.status,
    };
  }

  get #lock(): string {
    return `tokens:{${this.#id}}:lock`;
  }

  #begin(name: string, work: () => Promise<void> | undefined): boolean {
    if (this.#busy.has(name)) return false;
    this.#busy.add(name);
    const end = () => {
      this.#busy.delete(name);
      this.#ended++;
    };
    Promise.resolve(work()).then(end, end);
    return true;
  }

  async #install(process: number): Promise<void> {
    const install = ++this.#installs;
    const now = Date.now();
    const lives = { grantedAt: now, accessExpiresAt: now + HOUR_MS };
    await processes[process]?.tokens.install(
      { id: this.#id, companyId: this.#id, name: 'Acme', installedAt: now },
      { accessToken: `at-${install}`, refreshToken: `${install}.0`, ...lives },
    );
  }

  #answer({ response, install }: { response: ServerResponse; install: string }, how: string): void {
    const token = { rotated: { refresh_token: `${install}.${++this.#answers}` }, same: {} }[how];
    if (how === 'refused') this.#refused.add(install);
    const body = token
      ? { access_token: `at-${install}`, ...token }
      : { error: how === 'refused' ? 'invalid_grant' : 'temporarily_unavailable' };
    response.writeHead(token ? 200 : 400, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  }
}

test('of installs and refreshes at once, in any order, with locks that get lost, the newest grant wins', async () => {
  let count = 0;
  const seen = { overtaken: 0, refused: 0 };
  await fc.assert(
    fc.asyncProperty(steps, async (order) => {
      const play = new Play(`ins_${++count}`);
      await play.take({ do: 'install', process: 0 });
      for (const step of order) await play.take(step);
      await play.finish();
      const { stored, newest, wasRefused, status } = await play.outcome();
      expect(stored).toBe(newest);
      if (!wasRefused) expect(status).toBe('active');
      if (newest !== '1') seen.overtaken++;
      if (wasRefused) seen.refused++;
    }),
    { numRuns: RUNS, examples: [...OVERTAKEN, REFUSED].map((order) => [order]) },
  );
  // The steps did lead to what they are about.
  expect(seen.overtaken).toBeGreaterThan(RUNS / 10);
  expect(seen.refused).toBeGreaterThan(0);
});
