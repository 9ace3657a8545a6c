import { Redis } from 'ioredis';
import { afterAll, expect, test, vi } from 'vitest';
import { install, readStatus } from '../support/install.ts';
import { spawnEntry } from '../support/spawn-entry.ts';
import { startTestApp } from '../support/test-app.ts';
import { waitFor } from '../support/wait-for.ts';
import type { CallOrder, CallResult } from './refresh-caller.ts';

// Four processes start: on a machine that has other work, that takes its time.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const HOUR_MS = 60 * 60_000;
const DAY_MS = 24 * HOUR_MS;
/** Long enough for every other process to ask, too, if nothing keeps it from that, in milliseconds. */
const ANSWER_MS = 2_000;
const CALLERS = [13, 13, 12, 12];

const { control, session, env, redisUrl } = await startTestApp({ workers: false });
const browser = session();
const company = await control.addCompany({ name: 'Wanted', plan: 'starter', contacts: 1, conversations: 1 });
const id = await install(browser, company);
const processes = CALLERS.map((_, index) =>
  spawnEntry('test/trust/refresh-caller.ts', env, { args: [`p${index}`] }),
);
await Promise.all(processes.map((started) => started.waitForOutput(/ready/)));
// The first of them waits for results, and keeps all that is asked behind that waiting.
const [redis, keys] = [new Redis(redisUrl), new Redis(redisUrl)];
afterAll(() => {
  redis.disconnect();
  keys.disconnect();
});

function want(index: number, callers: number, rejectsLast = false): Promise<number> {
  const order: CallOrder = { instanceId: id, callers, rejectsLast };
  return redis.rpush(`orders:p${index}`, JSON.stringify(order));
}

async function nextResult(): Promise<CallResult> {
  const [, text = ''] = (await redis.blpop('results', 30)) ?? [];
  return JSON.parse(text) as CallResult;
}

/** Fifty callers in four processes want a token at once. */
async function wantTokens({ rejectsLast }: { rejectsLast: boolean } = { rejectsLast: false }) {
  const before = (await control.requests()).at(-1)?.n;
  await Promise.all(CALLERS.map((callers, index) => want(index, callers, rejectsLast)));
  const results: CallResult[] = [];
  for (const _ of CALLERS) results.push(await nextResult());
  const asked = (await control.requests(before)).filter(({ path }) => path === '/oauth/token');
  return {
    tokens: results.flatMap(({ tokens }) => tokens),
    failures: results.flatMap(({ failures }) => failures),
    asked: asked.map(({ status }) => status),
  };
}

test('fifty callers in four processes ask the service once, when the token has ended and when it was rejected', async () => {
  const first = await wantTokens();
  expect(first.tokens.length).toBe(50);
  expect(first.asked).toEqual([]);

  await control.clock({ advance_ms: HOUR_MS + 1_000 });
  const ended = await wantTokens();
  expect(ended.asked).toEqual([200]);
  expect(ended.tokens.length).toBe(50);
  expect(new Set(ended.tokens).size).toBe(1);
  expect(ended.tokens[0]).not.toBe(first.tokens[0]);

  const rejected = await wantTokens({ rejectsLast: true });
  expect(rejected.asked).toEqual([200]);
  expect(rejected.tokens.length).toBe(50);
  expect(new Set(rejected.tokens).size).toBe(1);
  expect(rejected.tokens[0]).not.toBe(ended.tokens[0]);
  expect((await readStatus(browser, id)).token.refreshes).toBe(2);
});

test('a Redis that loses the lock while the service is asked: the other processes wait all the same, and it is asked once', async () => {
  const match = { method: 'POST', path: '/oauth/token' };
  await control.fault({ match, fault: { delay_ms: ANSWER_MS }, times: 1 });
  await control.clock({ advance_ms: HOUR_MS + 1_000 });
  const wanted = wantTokens();
  await waitFor(() => keys.del(`tokens:{${id}}:lock`));
  const { tokens, failures, asked } = await wanted;
  expect(asked).toEqual([200]);
  expect([tokens.length, new Set(tokens).size, failures]).toEqual([50, 1, []]);
});

test('a process that is stopped while the service is asked: another one asks for nothing before it goes on, and gets the same token', async () => {
  const before = (await control.requests()).at(-1)?.n;
  const lock = `tokens:{${id}}:lock`;
  const match = { method: 'POST', path: '/oauth/token' };
  await control.fault({ match, fault: { delay_ms: ANSWER_MS }, times: 1 });
  await control.clock({ advance_ms: HOUR_MS + 1_000 });
  await want(0, 1);
  await waitFor(() => keys.exists(lock));
  const pid = processes[0]?.pid ?? expect.fail();
  process.kill(pid, 'SIGSTOP');
  // Nobody renews it now: this is how it ends, sooner.
  await keys.del(lock);
  await want(1, 1);
  // The other one has it: what it waits for is the lock of the machine.
  await waitFor(() => keys.exists(lock));
  process.kill(pid, 'SIGCONT');
  const results = [await nextResult(), await nextResult()];
  expect(results.flatMap(({ failures }) => failures)).toEqual([]);
  expect(new Set(results.flatMap(({ tokens }) => tokens)).size).toBe(1);
  const asked = (await control.requests(before)).filter(({ path }) => path === '/oauth/token');
  expect(asked.map(({ status }) => status)).toEqual([200]);
});

test('a token route that wants all of them to wait is asked by one, and all are told why', async () => {
  const fault = { status: 429, headers: { 'retry-after': '30' } };
  await control.fault({ match: { path: '/oauth/token' }, fault, times: 50 });
  await control.clock({ advance_ms: HOUR_MS + 1_000 });
  const { tokens, failures, asked } = await wantTokens();
  expect(asked).toEqual([429]);
  expect(tokens).toEqual([]);
  expect(failures).toEqual(
    Array(50).fill({ remedy: 'wait', message: "The service's token route has trouble (429)." }),
  );
  await control.clearFaults();
});

test('a grant that is over is asked for by one, and a new authorization ends all pauses', async () => {
  // Also the pause that the test before has begun.
  expect(await install(browser, company)).toBe(id);
  expect((await wantTokens()).tokens.length).toBe(50);

  await control.clock({ advance_ms: 200 * DAY_MS });
  const over = await wantTokens();
  expect(over.asked).toEqual([400]);
  expect(over.failures.map(({ remedy }) => remedy)).toEqual(Array(50).fill('reauthorize'));
  expect((await wantTokens()).asked).toEqual([]);

  expect(await install(browser, company)).toBe(id);
  const again = await wantTokens();
  expect([new Set(again.tokens).size, again.failures, again.asked]).toEqual([1, [], []]);
});
