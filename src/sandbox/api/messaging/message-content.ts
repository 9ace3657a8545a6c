import type { Channel } from '../../data/channels.ts';
import { blurbOf, type Delivery, type Recipient } from '../../data/messages.ts';
import { own } from '../request.ts';

/** What the bodies of the message routes have in common. */
export interface MessageBody {
  subject?: string | null | undefined;
  body?: string | undefined;
  text?: string | undefined;
  to?: readonly string[] | undefined;
  cc?: readonly string[] | undefined;
  bcc?: readonly string[] | undefined;
  metadata?: Readonly<Record<string, unknown>> | undefined;
}

/** How long a message that is to be sent stays a draft, in milliseconds of the service's clock. */
const SENDING_MS = 1_000;
/** The domain that no one can have (RFC 2606). */
const UNREACHABLE = /@(?:[^@]*\.)?invalid\.?$/i;

function textOf(html: string): string {
  return html
    .replace(/<[^<>]*>/g, ' ')
    .replace(/\s+/g, ' ')
    .trim();
}

function htmlOf(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('\n', '<br>');
}

/** What is kept of a body, and what it says of the message: of `body` and `text` each is made of the other. */
export function contentOf(body: MessageBody) {
  const text = body.text ?? textOf(body.body ?? '');
  const content = {
    subject: body.subject ?? null,
    body: body.body ?? htmlOf(text),
    text,
    blurb: blurbOf(text),
    metadata: body.metadata ?? {},
  };
  return { ...own(body), ...content };
}

/** To whom a body says that the message goes. */
export function addressees({ to, cc, bcc }: MessageBody): Recipient[] {
  const all = { to: to ?? [], cc: cc ?? [], bcc: bcc ?? [] };
  return (['to', 'cc', 'bcc'] as const).flatMap((role) => all[role].map((handle) => ({ handle, role })));
}

/** The channel's end of a message. */
export function channelHandle({ send_as, address, name }: Channel): string {
  return send_as ?? address ?? name;
}

/** When a message is sent, and what goes wrong then: nothing, unless one of those it goes to cannot be reached. */
export function deliveryTo(recipients: readonly Recipient[], now: number): Delivery {
  const fails = recipients.some(({ handle }) => UNREACHABLE.test(handle));
  return { at: now + SENDING_MS, error: fails ? 'recipient_unreachable' : null };
}
