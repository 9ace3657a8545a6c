import type { Collection, Document, Owner } from './collection.ts';
import type { Contact } from './contacts.ts';
import { AT_START_S, few } from './few.ts';

/** An account (Resources, "Account"): a firm that contacts belong to. */
export type Account = Document & {
  readonly name: string;
  readonly description: string | null;
  readonly domains: readonly string[];
  readonly external_id: string | null;
  readonly custom_fields: Readonly<Record<string, unknown>>;
  readonly is_blocked: boolean;
  readonly created_at: number;
  readonly updated_at: number;
};

/** Firms whose domains generated contacts write from. */
const AT_START = [
  {
    name: 'Larkspur Interiors',
    domain: 'larkspur.example',
    description: 'Furnishes hotels; pays by invoice.',
  },
  { name: 'Kuro Cycles', domain: 'kuro-cycles.example', description: null },
  { name: 'Saltmarsh Bakery', domain: 'saltmarsh.example', description: 'Seven shops along the coast 🥐' },
] as const;

/** Whether a contact belongs to an account: by a mail address at one of its domains. */
export function isOfAccount(contact: Contact, { domains }: Account): boolean {
  const endings = domains.map((domain) => `@${domain.toLowerCase()}`);
  return contact.handles.some(({ handle }) =>
    endings.some((ending) => handle.toLowerCase().endsWith(ending)),
  );
}

/** The accounts of a company: three at start. */
export function accounts(owner: Owner): Collection<Account> {
  return few<Account>(owner, {
    prefix: 'acc',
    start: AT_START.map(({ name, domain, description }) => (id, index) => ({
      id,
      name,
      description,
      domains: [domain],
      external_id: `crm-${1001 + index}`,
      custom_fields: { tier: index === 0 ? 'gold' : 'standard' },
      is_blocked: false,
      created_at: AT_START_S,
      updated_at: AT_START_S,
    })),
    present: (account, baseUrl) => {
      const self = `${baseUrl}/accounts/${account.id}`;
      return { _links: { self, related: { contacts: `${self}/contacts` } }, ...account };
    },
  });
}
