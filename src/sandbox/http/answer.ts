import { STATUS_CODES } from 'node:http';
import type { z } from 'zod';

const MESSAGE_MAX = 400;

/** Body of every API error (Errors; for other statuses than 429 our choice is the same object). */
interface ErrorBody {
  _error: { status: number; title: string; message: string };
}

/** An answer, ready to be sent; header names in lower case. */
export interface Answer {
  status: number;
  headers: Record<string, string>;
  body: string | Buffer;
}

/** A request that cannot be served as it is; it is thrown, and answered as `_error`. */
export class Problem extends Error {
  readonly status: number;
  readonly headers: Record<string, string>;

  constructor(status: number, message: string, headers: Record<string, string> = {}) {
    super(message);
    this.status = status;
    this.headers = headers;
  }
}

/** What a schema found wrong, each issue with its place. */
export function issuesOf({ issues }: z.ZodError): string[] {
  return issues.map(({ path, message }) => (path.length > 0 ? `${path.join('.')}: ${message}` : message));
}

/** The value as its schema has it. Throws a {@link Problem} with this status that names all that is wrong. */
export function check<T>(schema: z.ZodType<T>, value: unknown, status: number): T {
  const { success, data, error } = schema.safeParse(value);
  if (success) return data;
  throw new Problem(status, issuesOf(error).join('; '));
}

export function json(status: number, value: unknown, headers: Record<string, string> = {}): Answer {
  return jsonText(status, JSON.stringify(value), headers);
}

/** An answer of JSON that is written already. */
export function jsonText(status: number, body: string, headers: Record<string, string> = {}): Answer {
  return { status, headers: { 'content-type': 'application/json; charset=utf-8', ...headers }, body };
}

/** A message of bounded length: it may repeat a part of the request. */
export function clipped(text: string): string {
  return text.length > MESSAGE_MAX ? `${text.slice(0, MESSAGE_MAX)}…` : text;
}

/** An error in the service's one form (Errors). */
export function errorAnswer(status: number, text: string, headers: Record<string, string> = {}): Answer {
  const title = STATUS_CODES[status] ?? 'Error';
  const body: ErrorBody = { _error: { status, title, message: clipped(text) } };
  return json(status, body, headers);
}

/** The answer for a {@link Problem}; anything else that was thrown is thrown on. */
export function problemAnswer(error: unknown): Answer {
  if (error instanceof Problem) return errorAnswer(error.status, error.message, error.headers);
  throw error;
}

/** What a step gives, or the {@link Problem} that it threw. */
export async function orProblem<T>(step: () => T | Promise<T>): Promise<T | Problem> {
  try {
    return await step();
  } catch (error) {
    if (error instanceof Problem) return error;
    throw error;
  }
}
