import { Client } from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type PostgresServer, startPostgresServer } from './postgres-server.ts';
import { createTestPostgres } from './test-postgres.ts';

const TEXT = 'Zoë „naïve“ 日本語 👩‍🚀\n\t\\';

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgresServer();
});
afterAll(() => server.close());

async function query(url: string, statement: string, values: unknown[] = []): Promise<unknown[][]> {
  const client = new Client(url);
  await client.connect();
  try {
    return (await client.query<unknown[]>({ text: statement, values, rowMode: 'array' })).rows;
  } finally {
    await client.end();
  }
}

async function writeNote(url: string, text: string): Promise<void> {
  await query(url, 'create table note (text text not null)');
  await query(url, 'insert into note values ($1)', [text]);
}

/** @returns what waits for the end of the connection, and gives its reason */
async function connect(url: string): Promise<() => Promise<Error>> {
  const client = new Client(url);
  const reason = new Promise<Error>((resolve) => client.on('error', resolve));
  await client.connect();
  return () => reason;
}

test('two databases are apart, and each keeps text as it is', async () => {
  const [one, other] = [await createTestPostgres(), await createTestPostgres()];
  await writeNote(one.url, TEXT);
  await writeNote(other.url, 'another');
  expect(await query(one.url, 'select text from note')).toEqual([[TEXT]]);
  expect(await query(other.url, 'select text from note')).toEqual([['another']]);
  await Promise.all([one.drop(), other.drop()]);
});

test('a database can be the copy of another one', async () => {
  const template = await createTestPostgres();
  await writeNote(template.url, TEXT);
  const name = new URL(template.url).pathname.slice(1);
  const copies = await Promise.all([1, 2, 3].map(() => createTestPostgres({ template: name })));
  for (const { url } of copies) expect(await query(url, 'select text from note')).toEqual([[TEXT]]);
  await Promise.all([template, ...copies].map(({ drop }) => drop()));
});

test('a database can be dropped while somebody is connected to it', async () => {
  const database = await createTestPostgres();
  const brokenOff = await connect(database.url);
  await database.drop();
  expect(await brokenOff()).toMatchObject({ code: '57P01' });
  await expect(query(database.url, 'select 1')).rejects.toMatchObject({ code: '3D000' });
});

test.each(['kill', 'stop'] as const)('after a %s it starts again, with its data', async (end) => {
  const { url } = await createTestPostgres({ serverUrl: server.url });
  await writeNote(url, TEXT);
  const brokenOff = await connect(url);
  await server[end]();
  await brokenOff();
  await expect(query(url, 'select 1')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  await server.start();
  expect(await query(url, 'select text from note')).toEqual([[TEXT]]);
});
