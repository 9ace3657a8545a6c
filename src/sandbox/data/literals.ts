import { z } from 'zod';
import { account } from '../../contract/api/accounts.ts';
import { channel } from '../../contract/api/channels.ts';
import { contact } from '../../contract/api/contacts.ts';
import { conversation } from '../../contract/api/conversations.ts';
import { inbox } from '../../contract/api/inboxes.ts';
import { link } from '../../contract/api/links.ts';
import { message } from '../../contract/api/messages.ts';
import { cannedAnswer } from '../../contract/api/responses.ts';
import { tag } from '../../contract/api/tags.ts';
import { teammate } from '../../contract/api/teammates.ts';
import type { LiteralRecord, SeededResource } from '../types.ts';
import { wordsOf } from './messages.ts';

/** When a record was made that does not say so, in seconds since 1970. */
const AT_START_S = Date.UTC(2021, 0, 4) / 1000;
const RECORDS_MAX = 10_000_000;

/** An id that somebody chooses: it stands in paths as it is. */
export const chosenId = z
  .string()
  .regex(/^[A-Za-z0-9][\w.~-]{0,99}$/, 'must be up to 100 letters, digits, ".", "_", "~" and "-"');

const name = z.string().trim().min(1);
const reference = z.string().min(1);

/** The contract's members of a record, each if one likes, and any others; links are the service's own. */
function literal<Shape extends z.ZodRawShape>(answer: z.ZodObject<Shape>) {
  return answer
    .omit({ _links: true } as never)
    .extend({ id: chosenId })
    .partial();
}

/** What knowledge bases and articles say, by locale. */
function inLocales(content: z.ZodType) {
  return z.record(name, content).refine((contents) => Object.keys(contents).length > 0, 'needs a locale');
}

/** What a record of a seed may be. */
export const LITERAL = {
  contacts: literal(contact),
  conversations: literal(conversation).extend({
    tags: z.array(z.looseObject({ id: reference, name: z.string() })).optional(),
  }),
  messages: literal(message).extend({ conversation_id: reference }),
  teammates: literal(teammate).extend({ name }),
  inboxes: literal(inbox).extend({ name }),
  tags: literal(tag).extend({ name }),
  channels: literal(channel).extend({ name }),
  responses: literal(cannedAnswer).extend({ name }),
  accounts: literal(account).extend({ name }),
  links: literal(link).extend({ name }),
  knowledge_bases: z
    .strictObject({
      id: chosenId.optional(),
      default_locale: name,
      contents: inLocales(z.looseObject({ name })),
    })
    .refine(({ default_locale, contents }) => Object.hasOwn(contents, default_locale), {
      path: ['contents'],
      error: 'needs the default locale',
    }),
  articles: z.strictObject({
    id: chosenId.optional(),
    knowledge_base_id: reference.optional(),
    contents: inLocales(
      z.looseObject({
        subject: z.string(),
        content: z.string().optional(),
        status: z.enum(['draft', 'published']).optional(),
        author_id: reference.nullable().optional(),
      }),
    ),
  }),
} satisfies Record<SeededResource, z.ZodType>;

/** So many generated records, or literal ones; an error says which of them is wrong. */
export function recordsOf<S extends z.ZodType>(literal: S) {
  return z.union([z.int().min(0).max(RECORDS_MAX), z.array(literal)], {
    error: ({ errors = [] }) => {
      const inner = (errors as z.core.$ZodIssue[][]).flat().find(({ path }) => path.length > 0);
      return inner === undefined
        ? `must be a number up to ${RECORDS_MAX}, or a list of records`
        : `${inner.path.join('.')}: ${inner.message}`;
    },
  });
}

/** What a record has where nobody says something else. */
export const DEFAULTS = {
  contacts: {
    description: '',
    avatar_url: null,
    handles: [],
    groups: [],
    custom_fields: {},
    is_private: false,
  },
  conversations: {
    subject: '',
    assignee: null,
    recipient: null,
    tags: [],
    links: [],
    custom_fields: {},
    last_message: null,
    is_private: false,
  },
  messages: { type: 'email', is_inbound: true, author: null, recipients: [], delivery: null, seen_at: null },
  teammates: { is_admin: false, is_available: true, is_blocked: false, custom_fields: {}, signature: null },
  inboxes: { is_private: false, teammate_id: null, teammate_ids: [], custom_fields: {} },
  tags: { description: null, highlight: null, parent_tag_id: null, is_private: false, teammate_id: null },
  channels: { type: 'custom', address: null, send_as: null, settings: {}, is_private: false },
  responses: {
    subject: null,
    body: '',
    attachments: [],
    is_available_for_all_inboxes: true,
    inbox_ids: [],
  },
  accounts: { description: null, domains: [], external_id: null, custom_fields: {}, is_blocked: false },
  links: { type: 'web', external_url: null, custom_fields: {} },
  knowledge_bases: {},
  articles: {},
};

/** An article's content where nobody says something else: it begins as an empty draft. */
export const ARTICLE = { subject: 'Untitled', content: '', status: 'draft', author_id: null } as const;

function dated({ created_at = AT_START_S, ...members }: LiteralRecord) {
  return { created_at, updated_at: created_at, ...members };
}

function datedContents(defaults: object, contents: unknown) {
  const entries = Object.entries(contents as Record<string, LiteralRecord>);
  return {
    contents: Object.fromEntries(entries.map(([locale, one]) => [locale, { ...defaults, ...dated(one) }])),
  };
}

/** What follows from members that a record has, where it does not say it itself. */
const DERIVED: { readonly [Resource in SeededResource]?: (record: LiteralRecord) => object } = {
  contacts: ({ handles }) => ({ name: (handles as { handle: string }[] | undefined)?.[0]?.handle ?? '' }),
  conversations: ({ assignee = null }) => ({ status: assignee === null ? 'unassigned' : 'assigned' }),
  messages: (record) => wordsOf(record),
  teammates: ({ name }) => {
    const words = String(name).split(/\s+/);
    const local = words.join('.').toLowerCase();
    const [first_name, ...others] = words;
    return { first_name, last_name: others.join(' '), username: local, email: `${local}@team.example` };
  },
};

/** The record that a seed means, which was checked with {@link LITERAL}, with all the members that it needs. */
export function complete(resource: SeededResource, { _links, ...given }: LiteralRecord): object {
  const own = { ...DEFAULTS[resource], ...DERIVED[resource]?.(given) };
  if (resource === 'knowledge_bases') return { ...own, ...given, ...datedContents({}, given.contents) };
  if (resource === 'articles') return { ...own, ...given, ...datedContents(ARTICLE, given.contents) };
  return { ...own, ...dated(given) };
}
