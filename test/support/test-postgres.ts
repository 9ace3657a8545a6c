import { randomBytes } from 'node:crypto';
import { inject } from 'vitest';
import { runStatement } from './postgres-server.ts';

/** A database of PostgreSQL. */
export interface TestPostgres {
  url: string;
  /** Removes it, and breaks its connections off. */
  drop(): Promise<void>;
}

/** Makes an empty database on the one server of all tests. */
export async function createTestPostgres(): Promise<TestPostgres> {
  const serverUrl = inject('postgresUrl');
  const name = `test_${randomBytes(8).toString('hex')}`;
  await runStatement(serverUrl, `create database ${name}`);
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return { url: url.href, drop: () => runStatement(serverUrl, `drop database ${name} with (force)`) };
}
