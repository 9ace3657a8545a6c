import { randomBytes } from 'node:crypto';
import { inject } from 'vitest';
import { runStatement } from './postgres-server.ts';

/** An empty database, or a copy of another one. */
export interface TestPostgres {
  url: string;
  /** Removes it, and breaks off what is connected to it. */
  drop(): Promise<void>;
}

/**
 * Makes a database of its own.
 *
 * @param options.template the database of the same server that it is a copy of; nobody may be connected to that
 * @param options.serverUrl where it is made, by default the one server of all tests
 */
export async function createTestPostgres(
  options: { template?: string; serverUrl?: string } = {},
): Promise<TestPostgres> {
  const { template = 'template1', serverUrl = inject('postgresUrl') } = options;
  const name = `test_${randomBytes(8).toString('hex')}`;
  await runStatement(serverUrl, `create database ${name} template "${template}"`);
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return { url: url.href, drop: () => runStatement(serverUrl, `drop database ${name} with (force)`) };
}
