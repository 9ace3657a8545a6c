import type { Collection, Document, Owner } from './collection.ts';
import { AT_START_S, few } from './few.ts';

/** A canned answer. */
export type CannedAnswer = Document & {
  readonly name: string;
  readonly subject: string | null;
  /** HTML */
  readonly body: string;
  readonly attachments: readonly object[];
  readonly is_available_for_all_inboxes: boolean;
  /** Where it may be used; empty when that is everywhere. */
  readonly inbox_ids: readonly string[];
  readonly created_at: number;
  readonly updated_at: number;
};

const AT_START = [
  {
    name: 'Opening hours',
    subject: null,
    body: '<p>We are here from Monday to Friday, 9 to 17 o’clock.</p>',
    firstInboxOnly: false,
  },
  {
    name: 'Delivery takes longer',
    subject: 'Your order is a little late',
    body: '<p>Hello {{recipient.name}},</p><p>your parcel needs <b>two more days</b>. We are sorry!</p>',
    firstInboxOnly: true,
  },
  {
    name: 'Rücksendung',
    subject: 'So geht die Rücksendung',
    body: '<p>Kleben Sie das Etikett auf das Päckchen &amp; geben Sie es bei der Post ab.</p>',
    firstInboxOnly: false,
  },
] as const;

/** The canned answers of a company: three, of which one is for its first inbox alone. */
export function responses(owner: Owner, firstInbox: string): Collection<CannedAnswer> {
  return few<CannedAnswer>(owner, {
    prefix: 'rsp',
    start: AT_START.map(({ name, subject, body, firstInboxOnly }) => (id) => ({
      id,
      name,
      subject,
      body,
      attachments: [],
      is_available_for_all_inboxes: !firstInboxOnly,
      inbox_ids: firstInboxOnly ? [firstInbox] : [],
      created_at: AT_START_S,
      updated_at: AT_START_S,
    })),
    present: (response, baseUrl) => ({
      _links: { self: `${baseUrl}/responses/${response.id}` },
      ...response,
    }),
  });
}
