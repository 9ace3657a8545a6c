import type { IncomingMessage } from 'node:http';
import { Problem } from './answer.ts';

/** All bytes of a request's body. Throws a {@link Problem} (413) when there are more than `maxBytes`. */
export async function readBody(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    size += chunk.length;
    if (size > maxBytes)
      throw new Problem(413, `The body has more than ${maxBytes} bytes.`, { connection: 'close' });
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** The media type of a `Content-Type` header, in lower case and without parameters. */
export function mediaType(contentType: string | undefined): string {
  return (contentType ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
}

/** The JSON value in a body. Throws a {@link Problem} (400) when there is none. */
export function parseJson(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    throw new Problem(400, 'The body is not valid JSON.');
  }
}
