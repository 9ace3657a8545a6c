import type { Owner } from './ids.ts';
import { namesOfWhole } from './kinds.ts';
import { personName } from './names.ts';
import { Random, seedOf } from './random.ts';

/** When what every company has at start was made, in seconds since 1970. */
export const AT_START_S = Date.UTC(2021, 0, 4) / 1000;

const MADE = { created_at: AT_START_S, updated_at: AT_START_S };
const TEAMMATES_KIND = 3;
const TEAMMATES_MIN = 3;
/** As many teammates, the first ones, are in the inbox that is not everybody's. */
const SMALL_TEAM = 2;

/** Three to five teammates, of whom the first and the fourth are administrators. */
export function teammatesAtStart({ seed }: Owner) {
  const random = new Random(seedOf(seed, TEAMMATES_KIND, 0));
  return Array.from({ length: TEAMMATES_MIN + random.int(3) }, (_, index) => {
    const { name, latin } = personName(random, 'latin');
    return {
      email: `${latin}@team.example`,
      username: latin.replace('.', '_'),
      ...namesOfWhole(name),
      is_admin: index === 0 || index === 3,
      is_available: true,
      is_blocked: false,
      custom_fields: {},
      signature: `<p>Kind regards,<br>${name}</p>`,
      ...MADE,
    };
  });
}

/** An inbox that all teammates share, one that the first two share, and a private one of the first. */
export function inboxesAtStart(teammates: readonly string[]) {
  const inbox = (name: string, members: number, teammate_id: string | null = null) => ({
    name,
    is_private: teammate_id !== null,
    teammate_id,
    teammate_ids: teammates.slice(0, members),
    custom_fields: {},
    ...MADE,
  });
  return [
    inbox('Support', teammates.length),
    inbox('Sales', SMALL_TEAM),
    inbox('My inbox', 1, teammates[0] ?? null),
  ];
}

/** Four shared tags, and a private one of the first teammate. */
export function tagsAtStart(teammate: string) {
  const tag = (name: string, teammate_id: string | null = null) => ({
    name,
    description: null,
    highlight: null,
    parent_tag_id: null,
    is_private: teammate_id !== null,
    teammate_id,
    ...MADE,
  });
  const shared = ['Urgent', 'Refund', 'Waiting for customer', 'Lob 💛'].map((name) => tag(name));
  return [...shared, tag('My follow-ups', teammate)];
}

/** One channel in each of the first two inboxes, both of which take messages of other systems. */
export function channelsAtStart(inboxes: readonly string[]) {
  const channel = (name: string, type: string, inbox_id = '') => ({
    name,
    type,
    address: null,
    send_as: null,
    settings: {},
    inbox_id,
    is_private: false,
    ...MADE,
  });
  return [channel('Shop chat', 'custom', inboxes[0]), channel('Parcel tracker', 'application', inboxes[1])];
}

/** Three canned answers, of which one is for the first inbox alone. */
export function responsesAtStart(inbox: string) {
  const response = (name: string, subject: string | null, body: string, inbox_ids: string[] = []) => ({
    name,
    subject,
    body,
    attachments: [],
    is_available_for_all_inboxes: inbox_ids.length === 0,
    inbox_ids,
    ...MADE,
  });
  return [
    response('Opening hours', null, '<p>We are here from Monday to Friday, 9 to 17 o’clock.</p>'),
    response(
      'Delivery takes longer',
      'Your order is a little late',
      '<p>Hello {{recipient.name}},</p><p>your parcel needs <b>two more days</b>. We are sorry!</p>',
      [inbox],
    ),
    response(
      'Rücksendung',
      'So geht die Rücksendung',
      '<p>Kleben Sie das Etikett auf das Päckchen &amp; geben Sie es bei der Post ab.</p>',
    ),
  ];
}

function account(number: number, name: string, domain: string, description: string | null, tier: string) {
  return {
    name,
    description,
    domains: [domain],
    external_id: `crm-${number}`,
    custom_fields: { tier },
    is_blocked: false,
    ...MADE,
  };
}

/** Firms whose domains generated contacts write from. */
export const ACCOUNTS_AT_START = [
  account(1001, 'Larkspur Interiors', 'larkspur.example', 'Furnishes hotels; pays by invoice.', 'gold'),
  account(1002, 'Kuro Cycles', 'kuro-cycles.example', null, 'standard'),
  account(1003, 'Saltmarsh Bakery', 'saltmarsh.example', 'Seven shops along the coast 🥐', 'standard'),
];

/** Objects of another application that conversations may be about. */
export const LINKS_AT_START = [
  { name: 'Order 10482', path: 'orders/10482' },
  { name: 'Return 338', path: 'returns/338' },
].map(({ name, path }) => ({
  name,
  type: 'web',
  external_url: `https://shop.example/${path}`,
  custom_fields: {},
  ...MADE,
}));

/** One knowledge base, in English and in German. */
export const KNOWLEDGE_BASES_AT_START = [
  {
    default_locale: 'en',
    contents: { en: { name: 'Help centre', ...MADE }, de: { name: 'Hilfe-Center', ...MADE } },
  },
];

/** Two articles of the knowledge base: one in both of its locales, one in English alone. */
export function articlesAtStart(knowledge_base_id: string, author_id: string) {
  const text = (subject: string, content: string) => ({
    subject,
    content: `<p>${content}</p>`,
    status: 'published' as const,
    author_id,
    ...MADE,
  });
  const contents = [
    {
      en: text('Getting started', 'Write to us, and a person answers.'),
      de: text('Erste Schritte', 'Schreiben Sie uns: Ein Mensch antwortet.'),
    },
    { en: text('Returns and refunds', 'Send it back within thirty days.') },
  ];
  return contents.map((one) => ({ knowledge_base_id, default_locale: 'en', contents: one }));
}
