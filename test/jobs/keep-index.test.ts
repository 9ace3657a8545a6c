import { expect, test } from 'vitest';
import { keepIndex } from '../../jobs/keep-index.ts';
import { openTestStore } from '../store/test-store.ts';
import { testLogger } from '../support/test-logger.ts';
import { waitFor } from '../support/wait-for.ts';

const next = 'https://x.example/next';

async function start() {
  const store = await openTestStore();
  const { logger, lines } = testLogger();
  const { claim } = await store.claimRun();
  const write = (id: string) => store.write(claim, [`{"id":"${id}","name":"word"}`], { next });
  const found = async () => {
    const options = { search: 'word', offset: 0, limit: 5 };
    return (await store.records.browse(claim.instanceId, 'contacts', options)).total;
  };
  return {
    store,
    claim,
    write,
    found,
    lines,
    parts: { databaseUrl: store.url, logger },
  };
}

test('what is waiting is indexed, and what comes later too, until it ends', async () => {
  const { write, found, parts, lines } = await start();
  await write('1');
  await write('2');
  const end = keepIndex(parts);
  await waitFor(async () => (await found()) === 2);
  await write('3');
  await waitFor(async () => (await found()) === 3);
  await end();
  await write('4');
  expect(await found()).toBe(3);
  expect(lines).toEqual([]);
});

test('a removal that broke off is finished', async () => {
  const { store, claim, write, parts } = await start();
  await write('1');
  await store.db.insertInto('removals').values({ instance_id: claim.instanceId }).execute();
  const end = keepIndex(parts);
  await waitFor(async () => (await store.count(claim.instanceId, 'contacts')) === 0);
  await end();
  expect(await store.db.selectFrom('removals').selectAll().execute()).toEqual([]);
});

test('trouble is told, and ends with the process', async () => {
  const { store, write, parts, lines } = await start();
  await write('1');
  await store.db.schema.dropTable('search').execute();
  const end = keepIndex(parts);
  await waitFor(() => lines.length > 0);
  await end();
  expect(lines).toMatchObject([{ level: 'warn', msg: 'the search index could not be kept up' }]);
});
