import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { stringify } from 'csv-stringify/sync';
import { type Request, type Response, Router } from 'express';
import { oneLine, recordId } from '../../store/page-items.ts';
import { CopyRemovedError } from '../../store/records.ts';
import { type OwnList, ownList } from '../own-instance.ts';
import { readListQuery } from '../view/paging.ts';
import { parseDocument, plainValue } from '../view/record-view.ts';
import type { WebDependencies, WebResource } from '../web-dependencies.ts';
import { WebError } from '../web-error.ts';

/** Characters of one write. */
const CHUNK_LENGTH = 64 * 1_024;

/** Codes of a client that leaves during a download, or before it. */
const GONE_AWAY: readonly unknown[] = ['ERR_STREAM_PREMATURE_CLOSE', 'ERR_STREAM_UNABLE_TO_PIPE'];

/** Downloads of a process at a time: each holds a part of the copy in memory. */
const MOST_DOWNLOADS = 40;

const RETRY_AFTER_SECONDS = 30;

type Records = ReturnType<WebDependencies['records']['stream']>;

/** A kind of file, with its lines. */
interface Format {
  type: string;
  suffix: string;
  /** What ends a line. */
  end: string;
  lines: (found: OwnList, req: Request) => AsyncIterable<string>;
}

async function* documents(records: Records): AsyncGenerator<string> {
  for await (const { document } of records) yield oneLine(document);
}

/** RFC 4180, one row a record. An apostrophe precedes cells that a spreadsheet would run as formulas. */
async function* rows(records: Records, { columns = [] }: WebResource): AsyncGenerator<string> {
  const row = (cells: string[]) => stringify([cells], { escape_formulas: true, quoted: true, eof: false });
  // Excel reads UTF-8 only with this mark.
  yield `\ufeff${row(['Id', ...columns.map(({ title }) => title)])}`;
  for await (const { id, document } of records) {
    const parsed = parseDocument(document);
    yield row([String(recordId(id)), ...columns.map(({ path }) => plainValue(parsed, path))]);
  }
}

/** Joins lines to larger chunks. */
async function* chunks(lines: AsyncIterable<string>, end: string): AsyncGenerator<string> {
  let chunk = '';
  for await (const line of lines) {
    chunk += line + end;
    if (chunk.length < CHUNK_LENGTH) continue;
    yield chunk;
    chunk = '';
  }
  if (chunk !== '') yield chunk;
}

async function* resume(first: string, rest: AsyncIterable<string>): AsyncGenerator<string> {
  yield first;
  yield* rest;
}

/** A file name of plain letters and dashes. */
function fileName(company: string, rest: string): string {
  const plain = company
    .normalize('NFKD')
    .replace(/[^\w]+/g, '-')
    .replace(/^-+|-+$/g, '')
    .toLowerCase()
    .slice(0, 60);
  return `${plain || 'company'}-${rest}`;
}

/** A client that leaves and a deleted copy are no errors. */
function isEndedEarly(error: unknown): boolean {
  if (error instanceof CopyRemovedError) return true;
  return error instanceof Error && 'code' in error && GONE_AWAY.includes(error.code);
}

/** HTTP/1.0 has no chunks: a download that breaks off would look whole. */
function checkVersion({ httpVersion }: Request): void {
  if (httpVersion === '1.1') return;
  const message = 'A download that breaks off would look like a whole one.';
  const hint = `the proxy in front asks by HTTP/${httpVersion}; in nginx, set "proxy_http_version 1.1;"`;
  throw new WebError(505, 'Downloads need HTTP/1.1', message, { needsHelp: true, cause: new Error(hint) });
}

/**
 * A whole number from the query.
 *
 * @throws WebError 400 for anything else
 */
function wholeNumber(req: Request, name: string, otherwise: number): number {
  const given = req.query[name];
  if (given === undefined) return otherwise;
  if (typeof given === 'string' && /^\d+$/.test(given) && Number.isSafeInteger(Number(given)))
    return Number(given);
  throw new WebError(400, 'Bad request', `“${name}” must be a whole number, 0 or more.`);
}

/**
 * Downloads of a list, all of it or what a search (`q`) finds, as NDJSON or CSV; and its change feed. A download that
 * fails breaks its connection, so that no client takes a part for the whole.
 */
export function exportRoutes({ records, changes, ...deps }: WebDependencies): Router {
  const router = Router();
  let underWay = 0;
  const recordsOf = ({ company, resource }: OwnList, req: Request) =>
    records.stream(company.id, resource.name, { search: readListQuery(req.query).search });
  const ndjson = { type: 'application/x-ndjson', suffix: '.ndjson', end: '\n' };
  const csv = { type: 'text/csv; charset=utf-8', suffix: '.csv', end: '\r\n' };
  const formats: Record<string, Format> = {
    ':resource.ndjson': { ...ndjson, lines: (of, req) => documents(recordsOf(of, req)) },
    ':resource.csv': { ...csv, lines: (of, req) => rows(recordsOf(of, req), of.resource) },
    'changes/:resource.ndjson': {
      ...ndjson,
      suffix: '-changes.ndjson',
      lines: ({ company, resource }, req) => {
        const limit = wholeNumber(req, 'limit', Number.POSITIVE_INFINITY);
        return changes.feed(company.id, resource.name, { after: wholeNumber(req, 'after', 0), limit });
      },
    },
  };
  for (const [path, format] of Object.entries(formats)) {
    router.get(`/instances/:id/${path}`, (req, res) => send(req, res, format));
  }
  return router;

  async function send(req: Request, res: Response, { type, suffix, end, lines }: Format): Promise<void> {
    const list = await ownList(req, deps);
    checkVersion(req);
    const { company, resource } = list;
    const { fullAt } = await records.freshness(company.id, resource.name);
    // Else a person would take a part for the whole.
    const name = fullAt === null ? `${resource.name}-incomplete` : resource.name;
    const found = chunks(lines(list, req), end);
    const headers = {
      'Content-Type': type,
      'Cache-Control': 'no-store',
      'Content-Disposition': `attachment; filename="${fileName(company.name, name + suffix)}"`,
    };
    if (req.method === 'HEAD') {
      res.set(headers).end();
      return;
    }
    if (underWay >= MOST_DOWNLOADS) {
      const message = 'The app serves too many downloads at the moment. Try again in half a minute.';
      throw new WebError(503, 'Too many downloads', message, { retryAfterSeconds: RETRY_AFTER_SECONDS });
    }
    underWay++;
    try {
      // Read the first chunk before sending anything: a store that fails at once gets an error page.
      const first = await found.next();
      res.set(headers);
      if (first.done) res.end();
      else await pipeline(Readable.from(resume(first.value, found), { highWaterMark: 1 }), res);
    } catch (error) {
      if (!isEndedEarly(error)) throw error;
      res.destroy();
      res.locals.log.debug('download ended early');
    } finally {
      underWay--;
    }
  }
}
