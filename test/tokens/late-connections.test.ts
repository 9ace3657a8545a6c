import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import Sqlite from 'better-sqlite3';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { TokenStore } from '../../src/store/tokens.ts';
import { HOUR_MS, setUpTokens } from './tokens-setup.ts';

/** Longer than a refresh may wait for its connection. */
const LATE_MS = 400;

const t = await setUpTokens();

/** What happens while connections come about, each of which does so late; and how many have. */
let meanwhile: () => void;
let connections: number;

/** The loop stands still between a connection and what is sent on it: that is a connection which takes long. */
function beLate(): void {
  connections++;
  const until = performance.now() + LATE_MS;
  meanwhile();
  while (performance.now() < until);
}

beforeEach(() => {
  [connections, meanwhile] = [0, () => undefined];
  t.server.answerRefreshes({ rotating: true });
  t.now += HOUR_MS;
  subscribe('undici:client:connected', beLate);
});

afterEach(() => {
  unsubscribe('undici:client:connected', beLate);
});

function change(sql: string): void {
  const db = new Sqlite(t.databaseUrl.replace('file:', ''));
  db.prepare(sql).run(t.id);
  db.close();
}

test('a refresh whose connection comes about late is sent on it', async () => {
  expect(await t.accessToken()).toBe('at-1');
  expect(t.server.requests.length).toBe(1);
  expect(connections).toBe(1);
  expect(t.events).toEqual(['rotated']);
});

test('unless the company was disconnected meanwhile', async () => {
  meanwhile = () => change('delete from tokens where instance_id = ?');
  await expect(t.accessToken()).rejects.toThrow('The app holds no tokens for this instance.');
  expect(t.server.requests).toEqual([]);
  expect(t.events).toEqual([]);
});

test('or another grant has come meanwhile, which is taken', async () => {
  meanwhile = () => change('update tokens set version = version + 1 where instance_id = ?');
  expect(await t.accessToken()).toBe('at-0');
  expect(t.server.requests).toEqual([]);
  expect(t.events).toEqual([]);
});

test('or the process ends', async () => {
  meanwhile = () => t.tokens.end(60_000);
  await expect(t.accessToken()).rejects.toThrow('The app is being stopped');
  expect(t.server.requests).toEqual([]);
  expect(t.events).toEqual([]);
});

test('nor is one sent whose company was disconnected before, while anything else was slow', async () => {
  const store = new (class extends TokenStore {
    override async checkWritable(): Promise<void> {
      await super.checkWritable();
      change('delete from tokens where instance_id = ?');
    }
  })(t.db);
  t.tokens = t.newProcess({ store });
  await expect(t.accessToken()).rejects.toThrow('The app holds no tokens for this instance.');
  expect(t.server.requests).toEqual([]);
  expect(connections).toBe(0);
});
