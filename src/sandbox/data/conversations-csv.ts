import type { AnalyticsFilters, AnalyticsJob } from './analytics-job.ts';
import type { Collection } from './collection.ts';
import type { Conversation } from './conversations.ts';

/** As many conversations, those at the end of the list, are looked at for one file: it is made while someone waits. */
const LOOKED_AT_MAX = 10_000;

const COLUMNS = [
  'conversation_id',
  'created_at',
  'updated_at',
  'status',
  'inbox_id',
  'assignee_id',
  'subject',
];

function isNamed(ids: readonly string[] | undefined, ...found: (string | undefined)[]): boolean {
  return ids === undefined || found.some((id) => id !== undefined && ids.includes(id));
}

function meets(
  { inbox, tags, assignee }: Conversation,
  { inbox_ids, tag_ids, teammate_ids }: AnalyticsFilters,
): boolean {
  return (
    isNamed(inbox_ids, inbox.id) &&
    isNamed(tag_ids, ...tags.map(({ id }) => id)) &&
    isNamed(teammate_ids, assignee?.id)
  );
}

/** A field as RFC 4180 has it. */
function field(value: string | number): string {
  const text = String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function row({ id, created_at, updated_at, status, inbox, assignee, subject }: Conversation): string {
  return [id, created_at, updated_at, status, inbox.id, assignee?.id ?? '', subject].map(field).join(',');
}

/** The shared conversations that began in a time, as CSV with a head (RFC 4180); times in seconds since 1970. */
export function conversationsCsv(
  conversations: Collection<Conversation>,
  { start, end, filters }: Pick<AnalyticsJob, 'start' | 'end' | 'filters'>,
): string {
  const rows = conversations
    .all(LOOKED_AT_MAX)
    .filter(({ is_private }) => !is_private)
    .filter(({ created_at }) => created_at >= start && created_at < end)
    .filter((conversation) => meets(conversation, filters))
    .map(row);
  return [COLUMNS.join(','), ...rows].map((line) => `${line}\r\n`).join('');
}
