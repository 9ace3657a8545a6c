import type { Literal } from './collection.ts';
import { IdSeries, type Owner } from './ids.ts';
import type { Account, CannedAnswer, Channel, Document, Inbox, Link, Tag, Teammate } from './kinds.ts';
import type { Article, KnowledgeBase } from './knowledge-bases.ts';
import { personName } from './names.ts';
import { Random, seedOf } from './random.ts';

/** When what every company has at start was made, in seconds since 1970. */
export const AT_START_S = Date.UTC(2021, 0, 4) / 1000;

const MADE = { created_at: AT_START_S, updated_at: AT_START_S };
const TEAMMATES_KIND = 3;
const TEAMMATES_MIN = 3;
/** As many teammates, the first ones, are in the inbox that is not everybody's. */
const SMALL_TEAM = 2;

/** Records that have some members in common. */
function each<D extends Document>(
  common: Partial<Literal<D>>,
  records: readonly Partial<Literal<D>>[],
): Literal<D>[] {
  return records.map((record) => ({ ...common, ...record, ...MADE }) as unknown as Literal<D>);
}

/** Three to five teammates, of whom the first and the fourth are administrators. */
function teammates({ seed }: Owner): Literal<Teammate>[] {
  const random = new Random(seedOf(seed, TEAMMATES_KIND, 0));
  const people = Array.from({ length: TEAMMATES_MIN + random.int(3) }, (_, index) => {
    const { name, latin } = personName(random, 'latin');
    const [first_name = '', last_name = ''] = name.split(' ');
    return {
      email: `${latin}@team.example`,
      username: latin.replace('.', '_'),
      first_name,
      last_name,
      name,
      is_admin: index === 0 || index === 3,
      signature: `<p>Kind regards,<br>${name}</p>`,
    };
  });
  return each<Teammate>({ is_available: true, is_blocked: false, custom_fields: {} }, people);
}

/** What every company has at start: two shared inboxes and a private one, shared tags and a private one, and so on. */
export function recordsAtStart(owner: Owner) {
  const id = (prefix: string, index = 0) => new IdSeries(prefix, owner).id(index);
  const people = teammates(owner);
  const everyone = people.map((_, index) => id('tea', index));
  const own = { is_private: true, teammate_id: id('tea') };
  const written = (subject: string, content: string) =>
    ({ subject, content, status: 'published', author_id: id('tea'), ...MADE }) as const;
  return {
    teammates: people,
    inboxes: each<Inbox>({ is_private: false, teammate_id: null, custom_fields: {} }, [
      { name: 'Support', teammate_ids: everyone },
      { name: 'Sales', teammate_ids: everyone.slice(0, SMALL_TEAM) },
      { name: 'My inbox', teammate_ids: everyone.slice(0, 1), ...own },
    ]),
    tags: each<Tag>(
      { description: null, highlight: null, parent_tag_id: null, is_private: false, teammate_id: null },
      [
        { name: 'Urgent' },
        { name: 'Refund' },
        { name: 'Waiting for customer' },
        { name: 'Lob 💛' },
        { name: 'My follow-ups', ...own },
      ],
    ),
    channels: each<Channel>({ address: null, send_as: null, settings: {}, is_private: false }, [
      { name: 'Shop chat', type: 'custom', inbox_id: id('inb', 0) },
      { name: 'Parcel tracker', type: 'application', inbox_id: id('inb', 1) },
    ]),
    responses: each<CannedAnswer>(
      { subject: null, attachments: [], is_available_for_all_inboxes: true, inbox_ids: [] },
      [
        { name: 'Opening hours', body: '<p>We are here from Monday to Friday, 9 to 17 o’clock.</p>' },
        {
          name: 'Delivery takes longer',
          subject: 'Your order is a little late',
          body: '<p>Hello {{recipient.name}},</p><p>your parcel needs <b>two more days</b>. We are sorry!</p>',
          is_available_for_all_inboxes: false,
          inbox_ids: [id('inb')],
        },
        {
          name: 'Rücksendung',
          subject: 'So geht die Rücksendung',
          body: '<p>Kleben Sie das Etikett auf das Päckchen &amp; geben Sie es bei der Post ab.</p>',
        },
      ],
    ),
    // Generated contacts write from these domains.
    accounts: each<Account>({ description: null, custom_fields: { tier: 'standard' }, is_blocked: false }, [
      {
        name: 'Larkspur Interiors',
        description: 'Furnishes hotels; pays by invoice.',
        domains: ['larkspur.example'],
        external_id: 'crm-1001',
        custom_fields: { tier: 'gold' },
      },
      { name: 'Kuro Cycles', domains: ['kuro-cycles.example'], external_id: 'crm-1002' },
      {
        name: 'Saltmarsh Bakery',
        description: 'Seven shops along the coast 🥐',
        domains: ['saltmarsh.example'],
        external_id: 'crm-1003',
      },
    ]),
    links: each<Link>({ type: 'web', custom_fields: {} }, [
      { name: 'Order 10482', external_url: 'https://shop.example/orders/10482' },
      { name: 'Return 338', external_url: 'https://shop.example/returns/338' },
    ]),
    knowledge_bases: [
      {
        default_locale: 'en',
        contents: { en: { name: 'Help centre', ...MADE }, de: { name: 'Hilfe-Center', ...MADE } },
      },
    ] satisfies Literal<KnowledgeBase>[],
    articles: [
      {
        en: written('Getting started', '<p>Write to us, and a person answers.</p>'),
        de: written('Erste Schritte', '<p>Schreiben Sie uns: Ein Mensch antwortet.</p>'),
      },
      { en: written('Returns and refunds', '<p>Send it back within thirty days.</p>') },
    ].map((contents): Literal<Article> => ({ knowledge_base_id: id('knb'), default_locale: 'en', contents })),
  };
}
