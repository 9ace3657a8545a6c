import {
  brotliDecompressSync,
  constants,
  gunzipSync,
  inflateRawSync,
  inflateSync,
  zstdDecompressSync,
} from 'node:zlib';

/** The largest answer that is read, in bytes, packed and unpacked: a token response is a few hundred. */
const LARGEST_ANSWER_BYTES = 256 * 1024;

/** How RFC 1950 names its one method. */
const DEFLATED = 8;

/** What came of an answer's body. */
interface TokenBody {
  text: string;
  /** What its connection broke with before the end of the message, if it did. */
  brokenBy: { error: unknown } | undefined;
}

/**
 * Reads a body as far as it comes. It is asked for unpacked, but a proxy may pack it all the same: what came of such a
 * one is unpacked here, and not while it comes, as that is given up with its connection.
 *
 * @param codings what `content-encoding` says; an empty text where it is absent
 * @throws TypeError when it is larger than any token response
 */
export async function readTokenBody(body: AsyncIterable<Buffer>, codings: string): Promise<TokenBody> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  let brokenBy: TokenBody['brokenBy'];
  try {
    for await (const chunk of body) {
      bytes += chunk.length;
      if (bytes > LARGEST_ANSWER_BYTES) break;
      chunks.push(chunk);
    }
  } catch (error) {
    brokenBy = { error };
  }
  if (bytes > LARGEST_ANSWER_BYTES) throw new TypeError('The answer of the token route is far too large.');
  return { text: new TextDecoder().decode(unpack(Buffer.concat(chunks), codings)), brokenBy };
}

/**
 * As much as can be unpacked of what may have been cut off. Where that is nothing, or far too much, it is taken as it came: a
 * proxy that unpacks may leave the header.
 */
function unpack(bytes: Buffer, codings: string): Buffer {
  try {
    // In the order in which they were applied (RFC 9110, section 8.4): each on the way may have packed it once more.
    return codings.split(',').reduceRight(unpackOne, bytes);
  } catch {
    return bytes;
  }
}

function unpackOne(bytes: Buffer, coding: string): Buffer {
  const limits = { maxOutputLength: LARGEST_ANSWER_BYTES };
  const options = { ...limits, finishFlush: constants.Z_SYNC_FLUSH };
  // Names of codings know no case (section 8.4.1).
  switch (coding.trim().toLowerCase()) {
    case 'gzip':
    case 'x-gzip':
      return gunzipSync(bytes, options);
    case 'deflate':
      // Some leave out what is to stand around it (section 8.4.1.2).
      return isZlib(bytes) ? inflateSync(bytes, options) : inflateRawSync(bytes, options);
    case 'br':
      return brotliDecompressSync(bytes, { ...limits, finishFlush: constants.BROTLI_OPERATION_FLUSH });
    case 'zstd':
      return zstdDecompressSync(bytes, { ...limits, finishFlush: constants.ZSTD_e_flush });
    default:
      return bytes;
  }
}

/** Whether it begins as RFC 1950 has it. */
function isZlib(bytes: Buffer): boolean {
  return ((bytes[0] ?? 0) & 0x0f) === DEFLATED;
}
