import { afterAll, describe, expect, it } from 'vitest';
import { hashKey } from '../src/changes/collect-writes.ts';
import { ActionStore } from '../src/store/action-log.ts';
import type { Database } from '../src/store/database.ts';
import { openDatabase } from '../src/store/open-database.ts';
import { installInstance } from './support/install-instance.ts';
import { spawnEntry } from './support/spawn-entry.ts';
import { tempDir } from './support/temp-dir.ts';
import { createTestPostgres } from './support/test-postgres.ts';

const NOW = Date.UTC(2026, 2, 1);
const SEQ = 7;

const closers: (() => Promise<void>)[] = [];
afterAll(async () => {
  for (const close of closers.reverse()) await close();
});

async function createUrl(kind: string): Promise<string> {
  if (kind === 'SQLite') return `file:${tempDir()}/app.db`;
  const postgres = await createTestPostgres();
  closers.push(() => postgres.drop());
  return postgres.url;
}

/** An instance with two lists, whose handler has got everything; contacts hold the ids "a", 7 and "#b". */
async function createInstance(url: string): Promise<Database> {
  const db = await openDatabase(url);
  closers.push(() => db.destroy());
  await installInstance(db, { id: 'ins_1', name: 'Acme\u001b[2J' }, NOW);
  for (const resource of ['contacts', 'conversations']) {
    const { id: list } = await db
      .insertInto('lists')
      .values({ instance_id: 'ins_1', resource, change_seq: SEQ })
      .returning('id')
      .executeTakeFirstOrThrow();
    await db.insertInto('consumers').values({ list, consumer: 'handler', cursor: SEQ }).execute();
    if (resource !== 'contacts') continue;
    const values = ['a', '#7', '##b'].map((external_id, at) => ({ external_id, change_seq: SEQ - at }));
    const rest = { list, hash: 'h', created_seq: 1, document: '{}' };
    await db
      .insertInto('records')
      .values(values.map((value) => ({ ...rest, ...value })))
      .execute();
  }
  return db;
}

async function run(url: string, args: string[], env: Record<string, string> = {}) {
  const command = spawnEntry('src/cli.ts', { DATABASE_URL: url, LOG_LEVEL: 'silent', ...env }, { args });
  const { code } = await command.exited;
  return { code, output: command.output() };
}

describe.each(['SQLite', 'PostgreSQL'])('with %s', (kind) => {
  it('migrate makes the schema, which the other commands wait for', async () => {
    const url = await createUrl(kind);
    const early = await run(url, ['reencrypt']);
    expect(early).toMatchObject({
      code: 1,
      output: expect.stringMatching(/no database in|npm run migrate/),
    });
    expect(await run(url, ['migrate'])).toEqual({
      code: 0,
      output: "The database has this version's schema.\n",
    });
    expect(await run(url, ['reencrypt'])).toMatchObject({
      code: 0,
      output: expect.stringContaining('holds no tokens'),
    });
  });

  it('erase erases a record, and notes who did it, without its id', async () => {
    const url = await createUrl(kind);
    const db = await createInstance(url);
    const left = async () => {
      const rows = await db.selectFrom('records').select('external_id').where('document', 'is not', null);
      return (await rows.execute()).map((row) => row.external_id).sort();
    };
    const erased = await run(url, ['erase', 'ins_1', 'contacts', '7']);
    expect(erased).toMatchObject({
      code: 0,
      output: expect.stringContaining('7 of contacts of Acme?[2J is erased'),
    });
    expect(await left()).toEqual(['##b', 'a']);
    expect(await run(url, ['erase', 'ins_1', 'contacts', '7'])).toMatchObject({
      code: 1,
      output: expect.stringContaining('no record 7 in contacts'),
    });
    await run(url, ['replay', 'ins_1', 'contacts', 'a']);
    await run(url, ['disconnect', 'ins_1', '--delete-data']);
    expect(await left()).toEqual([]);
    expect(await new ActionStore(db).list({ limit: 9 })).toMatchObject([
      { action: 'disconnect and delete data', resource: null, record: null },
      { action: 'replay', resource: 'contacts', record: 'a' },
      { action: 'erase', resource: 'contacts', record: null, by: 'command', instanceId: 'ins_1' },
      { action: 'install' },
    ]);
  });
});

describe('outbox', () => {
  const facts = {
    instance_id: 'ins_1',
    request_hash: 'x',
    is_repeatable: 0,
    created_at: NOW,
    attempts: 1,
  } as const;
  const reply = {
    ...facts,
    operation: 'replyToConversation',
    object: '/conversations/cnv_1',
    path_values: '{}',
  };
  const unknown = {
    ...reply,
    key: 'reply:1',
    key_hash: hashKey('ins_1', 'reply:1'),
    state: 'unknown',
  } as const;
  const sending = {
    ...reply,
    key: 'reply:2',
    key_hash: hashKey('ins_1', 'reply:2'),
    state: 'sending',
  } as const;

  it('lists writes, and sends one again or ends it', async () => {
    const url = await createUrl('SQLite');
    const db = await createInstance(url);
    await db
      .insertInto('outbox')
      .values([{ ...unknown, error: 'No answer.\u001b[2J' }, sending])
      .execute();
    await db.insertInto('outboxes').values({ instance_id: 'ins_1', due_at: null }).execute();
    const listed = await run(url, ['outbox', 'ins_1']);
    expect(listed).toMatchObject({
      code: 0,
      output: expect.stringContaining('Acme?[2J: 0 pending, 1 sending, 0 refused, 1 unknown.'),
    });
    expect(listed.output).toMatch(
      /^unknown {3}reply:1 {2}replyToConversation \/conversations\/cnv_1\n.*tried 1 times: No answer\.\?\[2J$/m,
    );
    expect(await run(url, ['outbox', 'ins_1', 'retry', 'reply:1'])).toMatchObject({
      code: 0,
      output: expect.stringContaining('The write reply:1 of Acme?[2J is sent again.'),
    });
    expect((await run(url, ['outbox', 'ins_1', 'discard', 'reply:1'])).output).toContain('is discarded.');
    expect((await run(url, ['outbox', 'ins_1'])).output).toMatch(/^discarded reply:1 /m);
    expect(await new ActionStore(db).list({ limit: 9 })).toMatchObject([
      { action: 'end-write', record: null, by: 'command' },
      { action: 'send-again' },
      { action: 'install' },
    ]);
    for (const [args, says] of [
      [['retry', 'reply:2'], 'The write reply:2 of Acme?[2J is being sent.'],
      [['discard', 'reply:1'], 'is discarded and cannot be sent any more.'],
      [['retry', 'none'], 'There is no write none of Acme?[2J.'],
      [['delete', 'reply:1'], 'retry KEY, or discard KEY.'],
      [['retry'], 'retry KEY, or discard KEY.'],
    ] as const) {
      const ended = await run(url, ['outbox', 'ins_1', ...args]);
      expect(ended).toMatchObject({ code: 1, output: expect.stringContaining(`${says} Nothing was done.`) });
    }
  });

  it('says what a disconnect and an erasure discard', async () => {
    const url = await createUrl('SQLite');
    const db = await createInstance(url);
    const [one, two] = ['a', 'b'].map((key) => ({
      ...unknown,
      key,
      key_hash: key,
      state: 'pending' as const,
    }));
    await db
      .insertInto('outbox')
      .values([
        { ...unknown, ...one, object: '/contacts/a' },
        { ...unknown, ...two },
      ])
      .execute();
    const erased = await run(url, ['erase', 'ins_1', 'contacts', 'a']);
    expect(erased.output).toContain('1 write to it that waited is discarded.');
    const { output } = await run(url, ['disconnect', 'ins_1']);
    expect(output).toContain('1 write to the service that waited is discarded.');
  });
});

describe('a command that cannot do what it is asked', () => {
  it.each([
    [['replay', 'ins_2'], 1, 'no instance ins_2'],
    [['replay', 'ins_1', 'tags'], 1, 'no list "tags"; its lists: contacts, conversations'],
    [['replay', 'ins_1', 'contacts', '8'], 1, 'no record 8 in contacts'],
    [['disconnect', 'ins_1', 'ins_2'], 2, '"ins_2" is one argument too many'],
    [['disconnect', '--delete-data'], 2, 'npm run disconnect -- INSTANCE_ID [--delete-data]'],
    [['migrate', '--dry-run'], 2, "'--dry-run'"],
    [['restore', 'no-such-file'], 1, 'There is no file'],
    [['toString'], 2, 'npm run migrate|keys|reencrypt|disconnect|replay|erase|outbox|backup|restore'],
  ])('says so and ends: %j', async (args, code, says) => {
    const url = await createUrl('SQLite');
    const db = await createInstance(url);
    const ended = await run(url, args);
    expect(ended).toMatchObject({ code, output: expect.stringContaining('Nothing was done.') });
    expect(ended.output).toContain(says);
    const instance = await db.selectFrom('instances').select('status').executeTakeFirstOrThrow();
    expect(instance.status).toBe('active');
  });

  it('names the option that npm has kept', async () => {
    const ended = await run('file:unused', ['disconnect', 'ins_1'], { npm_config_delete_data: 'true' });
    expect(ended).toMatchObject({ code: 2, output: expect.stringContaining('npm has kept --delete-data') });
  });

  it('names a PostgreSQL database without its password', async () => {
    const url = new URL(await createUrl('PostgreSQL'));
    await (await openDatabase(url.href)).destroy();
    url.password ||= 'hush';
    url.searchParams.set('application_name', 'hush');
    const { output } = await run(url.href, ['disconnect', 'ins_1']);
    expect(output).toContain(`no instance ins_1 in postgres`);
    expect(output).toContain(url.pathname);
    expect(output).not.toContain('hush');
  });
});

it('reencrypt fails, and names the instances whose tokens it cannot decrypt', async () => {
  const url = await createUrl('SQLite');
  await createInstance(url);
  const { code, output } = await run(url, ['reencrypt']);
  expect(code).toBe(1);
  expect(output).toContain('cannot be decrypted: 1.');
  expect(output).toContain('  ins_1: ');
});
