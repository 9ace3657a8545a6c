import { type Contact, indexInHandle } from '../../data/contacts.ts';
import { type ApiContext, seconds } from '../request.ts';

function sourceOf(handle: string): string {
  if (handle.includes('@')) return 'email';
  return /^\+?[\d ()-]+$/.test(handle) ? 'phone' : 'custom';
}

function isKnownBy(contact: Contact | undefined, handle: string): contact is Contact {
  return contact?.handles.some((one) => one.handle.toLowerCase() === handle) === true;
}

/** The contact with a handle (in any case); one that is not known yet is created. */
export function contactOf(
  { tables: { contacts }, company: { correspondence }, now }: ApiContext,
  handle: string,
  name: string | undefined,
): Contact {
  const key = handle.toLowerCase();
  const noted = contacts.find(correspondence.find('contact handle', key) ?? '');
  if (isKnownBy(noted, key)) return noted;
  const index = indexInHandle(key);
  const generated = index === undefined ? undefined : contacts.find(contacts.idAt(index));
  if (isKnownBy(generated, key)) return generated;
  const at = seconds(now);
  const contact = contacts.add((id) => ({
    id,
    name: name ?? handle,
    description: '',
    avatar_url: null,
    handles: [{ handle, source: sourceOf(handle) }],
    groups: [],
    custom_fields: {},
    is_private: false,
    created_at: at,
    updated_at: at,
  }));
  correspondence.note(contact.id, 'contact handle', key);
  return contact;
}
