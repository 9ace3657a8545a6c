import { sql } from 'kysely';
import type { Database } from '../../src/store/database.ts';

export const PAGE_2 = 'https://x.example/contacts?page_token=2';

/** Rows for every table of 0001-initial. Lists and runs get ids from 1. */
export const OLD_ROWS = `
insert into instances (id, company_id, name, status, error_kind, installed_at) values
  ('ins_a', 'cmp_a', 'Ada', 'active', null, 1), ('ins_p', null, 'Pause', 'paused', null, 2),
  ('ins_r', null, 'Again', 'needs_reauthorization', 'reauthorize', 3),
  ('ins_d', null, 'Gone', 'disconnected', null, 4);
insert into tokens values ('ins_a', 'x', 'y', 9, 5, 6, 7, 3, 1, 2, 'host', 8, 4, 1);
insert into browsers values ('browser');
insert into sessions values ('sid', 'browser', 9);
insert into access values ('browser', 'ins_a', 8);
insert into installs values ('state', 'nonce', 'browser', '/x', 9, 'code', 8, 'ins_a', null, null);
insert into settings values ('installation_id', 'one');
insert into lists (instance_id, resource, change_seq, stored, behind_since, paused_at, removed_at) values
  ('ins_a', 'contacts', 30, 1, 350, null, null), ('ins_a', 'conversations', 0, 0, 100, null, null),
  ('ins_a', 'tags', 0, 0, null, 50, null), ('ins_p', 'contacts', 0, 0, null, null, null),
  ('ins_r', 'contacts', 0, 0, 100, null, null), ('ins_d', 'contacts', 0, 0, null, null, null),
  ('ins_a', 'contacts', 0, 0, null, null, 60);
insert into runs (list, state, fence, held, pages, cursor, waiting_for, wait_until, started_at, finished_at) values
  (1, 'finished', 1, 0, 2, null, null, null, 100, 200), (1, 'finished', 1, 7, 2, null, null, null, 200, 300),
  (1, 'failed', 1, 0, 2, '${PAGE_2}', null, null, 350, 400),
  (2, 'waiting', 9, 0, 1, '${PAGE_2}', 'retry', 500, 100, null),
  (3, 'finished', 1, 0, 2, null, null, null, 100, 200), (4, 'finished', 1, 0, 2, null, null, null, 100, 300),
  (4, 'waiting', 1, 0, 1, '${PAGE_2}', 'turn', null, 300, null),
  (5, 'failed', 1, 0, 2, null, null, null, 100, 400), (6, 'ended', 1, 0, 2, null, null, null, 100, 400);
insert into records (list, external_id, hash, change_seq, created_seq, deleted_at, erased_at, document) values
  (1, 'a', 'h', 10, 10, null, null, '{"id":"a"}'), (1, 'b', 'h', 20, 11, 9, null, '{"id":"b"}'),
  (1, 'c', null, 30, 12, 9, 9, null);
insert into seen values (1, 1, 1);
insert into rejected_records values (1, 'h', 'It has no id.', '{}', 2, 9, 2);
insert into consumers values (1, 'handler', 10, 3, 2, 20, 99, 1, 'handler', 'x');
insert into dead_letters values (1, 'handler', 'a', 'handler', 'x', 9);
insert into actions (instance_id, resource, record, action, "by", at) values ('ins_a', 'contacts', 'a', 'replay', 'command', 9)`;

/** Rows for the tables of later migrations, beside those. */
export const LATER_ROWS = `
insert into outboxes (instance_id) values ('ins_a');
insert into outbox (instance_id, key_hash, request_hash, operation, is_repeatable, state, created_at) values
  ('ins_a', 'k', 'r', 'replyToConversation', 0, 'pending', 9);
insert into tombstones values ('h');
insert into days values (1, 20000, 1, 0, 2, 3, 4, 0)`;

/** All rows of all tables, without those of the search index and of the migrations. */
export async function rowsOf(db: Database): Promise<Record<string, object[]>> {
  const rows: Record<string, object[]> = {};
  for (const { name } of await db.introspection.getTables()) {
    if (/^(search|kysely|fork_migration)/.test(name)) continue;
    rows[name] = (await sql<object>`select * from ${sql.table(name)}`.execute(db)).rows;
  }
  return rows;
}
