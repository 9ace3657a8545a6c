import type { LiteralRecord } from '../types.ts';
import { personName } from './names.ts';
import { Random, seedOf } from './random.ts';

const TEAMMATES_KIND = 3;
const TEAMMATES_MIN = 3;
/** As many teammates, the first ones, are in the inbox that is not everybody's. */
const SMALL_TEAM = 2;

/** What every company has at start, where nobody gives it something else; the arguments are ids of its records. */
export const AT_START = {
  /** Three to five, of whom the first and the fourth are administrators. @param seed the company's */
  teammates(seed: number): LiteralRecord[] {
    const random = new Random(seedOf(seed, TEAMMATES_KIND, 0));
    return Array.from({ length: TEAMMATES_MIN + random.int(3) }, (_, index) => {
      const { name, latin } = personName(random, 'latin');
      const signature = `<p>Kind regards,<br>${name}</p>`;
      const [email, username] = [`${latin}@team.example`, latin.replace('.', '_')];
      return { email, username, name, is_admin: index === 0 || index === 3, signature };
    });
  },

  inboxes: ([owner, ...others]: string[]): LiteralRecord[] => [
    { name: 'Support', teammate_ids: [owner, ...others] },
    { name: 'Sales', teammate_ids: [owner, ...others].slice(0, SMALL_TEAM) },
    { name: 'My inbox', teammate_ids: [owner], is_private: true, teammate_id: owner },
  ],

  tags: ([teammate_id]: string[]): LiteralRecord[] => [
    { name: 'Urgent' },
    { name: 'Refund' },
    { name: 'Waiting for customer' },
    { name: 'Lob 💛' },
    { name: 'My follow-ups', is_private: true, teammate_id },
  ],

  channels: ([inbox_id, other = inbox_id]: string[]): LiteralRecord[] => [
    { name: 'Shop chat', inbox_id },
    { name: 'Parcel tracker', type: 'application', inbox_id: other },
  ],

  responses: ([inbox_id]: string[]): LiteralRecord[] => [
    { name: 'Opening hours', body: '<p>We are here from Monday to Friday, 9 to 17 o’clock.</p>' },
    {
      name: 'Delivery takes longer',
      subject: 'Your order is a little late',
      body: '<p>Hello {{recipient.name}},</p><p>your parcel needs <b>two more days</b>. We are sorry!</p>',
      is_available_for_all_inboxes: false,
      inbox_ids: [inbox_id],
    },
    {
      name: 'Rücksendung',
      subject: 'So geht die Rücksendung',
      body: '<p>Kleben Sie das Etikett auf das Päckchen &amp; geben Sie es bei der Post ab.</p>',
    },
  ],

  /** Generated contacts write from these domains. */
  accounts: [
    {
      name: 'Larkspur Interiors',
      description: 'Furnishes hotels; pays by invoice.',
      domains: ['larkspur.example'],
      external_id: 'crm-1001',
      custom_fields: { tier: 'gold' },
    },
    {
      name: 'Kuro Cycles',
      domains: ['kuro-cycles.example'],
      external_id: 'crm-1002',
      custom_fields: { tier: 'standard' },
    },
    {
      name: 'Saltmarsh Bakery',
      description: 'Seven shops along the coast 🥐',
      domains: ['saltmarsh.example'],
      external_id: 'crm-1003',
      custom_fields: { tier: 'standard' },
    },
  ],

  links: [
    { name: 'Order 10482', external_url: 'https://shop.example/orders/10482' },
    { name: 'Return 338', external_url: 'https://shop.example/returns/338' },
  ],

  knowledge_bases: [
    { default_locale: 'en', contents: { en: { name: 'Help centre' }, de: { name: 'Hilfe-Center' } } },
  ],

  articles([author_id]: string[]): LiteralRecord[] {
    const written = (subject: string, content: string) => {
      return { subject, content, status: 'published', author_id };
    };
    return [
      {
        contents: {
          en: written('Getting started', '<p>Write to us, and a person answers.</p>'),
          de: written('Erste Schritte', '<p>Schreiben Sie uns: Ein Mensch antwortet.</p>'),
        },
      },
      { contents: { en: written('Returns and refunds', '<p>Send it back within thirty days.</p>') } },
    ];
  },
};
