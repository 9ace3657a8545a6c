import { z } from 'zod';

/** An id, as the service gives them out. */
export const id = z.string().min(1);

/** Text that says something; kept as it was sent. */
export const nonBlank = z.string().regex(/\S/, 'must not be blank');

/** A moment in seconds since 1970, with a fraction (our choice: the specification shows no format). */
export const timestamp = z.number().nonnegative();

/** Links of a document: `self`, and what is related to it. */
export const links = z.looseObject({ self: z.url() });

/** Fields of one's own; values are kept as they were sent. */
export const customFields = z.record(z.string(), z.unknown());

/** What an asynchronous creation of a message answers (Resources, "Message"). */
export const acceptedMessage = z.looseObject({ status: z.literal('accepted'), message_uid: z.string() });
