import { randomUUID } from 'node:crypto';
import type { Request, RequestHandler, Response } from 'express';
import type { Logger } from 'pino';
import { pinoHttp, startTime } from 'pino-http';

declare global {
  namespace Express {
    interface Locals {
      requestId: string;
      log: Logger;
      /** Whether the request has shown the operator's password. */
      isOperator?: boolean;
    }
  }
}

/** Fits UUIDs and trace ids, and nothing that could forge a log line. */
const SANE_REQUEST_ID = /^[\w.:-]{8,64}$/;

/** Machines and open pages ask for these every few seconds: logged at debug. */
const QUIET_ROUTES = ['/healthz', '/readyz', '/metrics', '/assets/*', '/instances/:id/status'];

const INSTANCE = /^(?:\/ops)?\/instances\/(ins_\w{1,64})(?:[/?]|$)/;

/** What is measured and logged of a request. */
export interface RequestFacts {
  method: string;
  /** The route's pattern (`/instances/:id`), never the path, which may hold a record's id; `other` for none. */
  route: string;
  /** 0 when the client left before an answer had begun. */
  status: number;
  durationMs: number;
}

function factsOf(req: Request, res: Response): Omit<RequestFacts, 'durationMs'> {
  const pattern: unknown = req.route?.path;
  const asset = req.originalUrl.startsWith('/assets/') ? '/assets/*' : 'other';
  const route = typeof pattern === 'string' ? pattern : asset;
  return { method: req.method, route, status: res.headersSent ? res.statusCode : 0 };
}

function lineOf(req: Request, res: Response) {
  const instanceId = INSTANCE.exec(req.originalUrl)?.[1];
  const aborted = res.writableFinished ? undefined : true;
  return { ...factsOf(req, res), ms: Date.now() - res[startTime], instanceId, aborted };
}

function messageOf(req: Request, res: Response): string {
  const { method, route, status, ms } = lineOf(req, res);
  return `${method} ${route} ${status} ${ms} ms`;
}

function levelOf(req: Request, res: Response): 'error' | 'info' | 'debug' {
  const { method, route, status } = factsOf(req, res);
  if (status >= 500) return 'error';
  // An open page fetches changes by itself (Fetch Metadata).
  const isQuiet = QUIET_ROUTES.includes(route) || req.get('sec-fetch-dest') === 'empty';
  // The target of a redirect has its own line.
  const isRedirect = status >= 300 && status < 304;
  return method !== 'POST' && (isRedirect || isQuiet) ? 'debug' : 'info';
}

/**
 * Gives every request an id (a sane `x-request-id`, or a new one) and a logger, and writes one line at its end: never a
 * query, a cookie, a body or a record's id.
 *
 * @param onRequest called once a request, when it is over
 */
export function requestLog(logger: Logger, onRequest?: (facts: RequestFacts) => void): RequestHandler {
  const logRequest = pinoHttp<Request, Response>({
    logger,
    genReqId: (req) => {
      const given = req.get('x-request-id');
      return given && SANE_REQUEST_ID.test(given) ? given : randomUUID();
    },
    quietReqLogger: true,
    quietResLogger: true,
    wrapSerializers: false,
    // Else pino-http logs the whole request.
    serializers: { req: () => undefined },
    customAttributeKeys: { reqId: 'requestId' },
    customLogLevel: levelOf,
    customSuccessObject: lineOf,
    customSuccessMessage: messageOf,
    // The error page logs the error.
    customErrorObject: lineOf,
    customErrorMessage: messageOf,
  });
  return (req, res, next) => {
    const startedAt = performance.now();
    logRequest(req, res);
    res.locals.requestId = String(req.id);
    res.locals.log = req.log;
    res.setHeader('X-Request-Id', String(req.id));
    // An error without a listener would end the process.
    res.on('error', (err) => req.log.error({ err }, 'an answer could not be written'));
    res.once('close', () => onRequest?.({ ...factsOf(req, res), durationMs: performance.now() - startedAt }));
    next();
  };
}
